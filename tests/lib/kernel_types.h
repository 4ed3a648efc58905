/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: which of an op's declared types a device computes in.
 */
#ifndef TF_TESTS_LIB_KERNEL_TYPES_H
#define TF_TESTS_LIB_KERNEL_TYPES_H

#include "exec/device/kernel.h"

/* The types in which ops compute; others are only passed on. */
#define COMPUTED_TYPES (DTYPES_ANY & ~(DTYPE_BIT(STRING) | DTYPE_BIT(RESOURCE)))

/* Returns those of them that some kernel of the device supports. */
static inline dtype_set computed_types(const struct kernel_table *table, const struct op *op,
                                       const struct op_attr *attr, const char *device)
{
    return kernel_types(table, op, attr, device) & COMPUTED_TYPES;
}

#endif
