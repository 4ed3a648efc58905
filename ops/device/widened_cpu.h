/* SPDX-License-Identifier: Apache-2.0
 *
 * Narrow types: a kernel of a wide type for them, `widened_CODE` and `bounded_CODE` as names
 * of rows, and its loops.
 */
#ifndef TF_OPS_DEVICE_WIDENED_CPU_H
#define TF_OPS_DEVICE_WIDENED_CPU_H

#include "exec/device/kernel.h"

#define CPU_WIDENED "widened_" /* integers wrap around */
#define CPU_BOUNDED "bounded_" /* integers are bounded by what their type holds */

extern const struct kernel_code kernel_widened, kernel_bounded;

/* For kernels that do better, a block at a time. The type in which a type is computed: itself, if
 * it is no narrow one. */
enum dtype widened_type(enum dtype type);

/* n elements of a narrow type to its wide one and back, where integers wrap around or are bounded;
 * NULL for others. By type, as small kernels ask in every run. */
typedef void widened_loop(const void *from, void *to, int64_t n);
extern const struct widened_conversion {
    widened_loop *widen, *narrow, *bound;
} widened_conversions[32];

#endif
