/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel of a wide type for narrow ones: `widened_CODE` and `bounded_CODE` are names of rows.
 */
#ifndef TF_OPS_DEVICE_WIDENED_CPU_H
#define TF_OPS_DEVICE_WIDENED_CPU_H

#include "exec/device/kernel.h"

#define CPU_WIDENED "widened_" /* integers wrap around */
#define CPU_BOUNDED "bounded_" /* integers are bounded by what their type holds */

extern const struct kernel_code kernel_widened, kernel_bounded;

#endif
