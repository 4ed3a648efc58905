/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: which of an op's declared types a device computes in.
 */
#ifndef TF_TESTS_LIB_KERNEL_TYPES_H
#define TF_TESTS_LIB_KERNEL_TYPES_H

#include <string.h>

#include "exec/device/kernel.h"

/* Types that are computed in; others are handed on. */
#define COMPUTED_TYPES (DTYPES_ANY & ~(DTYPE_BIT(STRING) | DTYPE_BIT(RESOURCE)))

/* The types that a kernel row allows for an attribute: "T=float32|float64 Tidx=int32". */
static inline dtype_set row_types(const struct kernel_row *row, const struct op_attr *attr)
{
    dtype_set set = 0;
    size_t n = strlen(attr->name);
    const char *p = row->types;
    while (p && (strncmp(p, attr->name, n) || p[n] != '='))
        p = (p = strchr(p, ' ')) ? p + 1 : NULL;
    if (!p)
        return attr->types;
    for (p += n + 1; *p && *p != ' ';) {
        size_t length = strcspn(p, "| ");
        set |= dtype_set_of(p, length);
        p += length + (p[length] == '|');
    }
    return set & attr->types;
}

/* Of the types that are computed in, those that some kernel of the device takes. */
static inline dtype_set kernel_types(const struct kernel_table *table, const struct op *op,
                                     const struct op_attr *attr, const char *device)
{
    dtype_set set = 0;
    for (size_t i = 0; i < table->n; i++)
        if (!strcmp(table->rows[i].op, op->def->name) && !strcmp(table->rows[i].device, device))
            set |= row_types(&table->rows[i], attr);
    return set & COMPUTED_TYPES;
}

#endif
