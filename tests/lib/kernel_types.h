/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: which of an op's declared types a device computes in.
 */
#ifndef TF_TESTS_LIB_KERNEL_TYPES_H
#define TF_TESTS_LIB_KERNEL_TYPES_H

#include "exec/device/kernel.h"

/* Types that are computed in; others are handed on. */
#define COMPUTED_TYPES (DTYPES_ANY & ~(DTYPE_BIT(STRING) | DTYPE_BIT(RESOURCE)))

/* Of those, the types that some kernel of the device takes. */
static inline dtype_set computed_types(const struct kernel_table *table, const struct op *op,
                                       const struct op_attr *attr, const char *device)
{
    return kernel_types(table, op, attr, device) & COMPUTED_TYPES;
}

#endif
