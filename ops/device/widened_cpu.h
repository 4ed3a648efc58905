/* SPDX-License-Identifier: Apache-2.0
 *
 * Narrow types: kernels that compute them in a wide type, named `widened_CODE` and `bounded_CODE`
 * in rows, and conversion loops.
 */
#ifndef TF_OPS_DEVICE_WIDENED_CPU_H
#define TF_OPS_DEVICE_WIDENED_CPU_H

#include "exec/device/kernel.h"

#define CPU_WIDENED "widened_" /* integers wrap around */
#define CPU_BOUNDED "bounded_" /* integers are clamped to their type's range */

extern const struct kernel_code kernel_widened, kernel_bounded;

/* For kernels that convert a block at a time themselves. Returns the type that a type is computed
 * in: itself unless it is narrow. */
enum dtype widened_type(enum dtype type);

/* Converts n elements of a narrow type to its wide one, or back, where integers wrap around or are
 * clamped; NULL for other types. A table by type, as small kernels look it up in every run. */
typedef void widened_loop(const void *from, void *to, int64_t n);
extern const struct widened_conversion {
    widened_loop *widen, *narrow, *bound;
} widened_conversions[32];

#endif
