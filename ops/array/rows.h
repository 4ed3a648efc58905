/* SPDX-License-Identifier: Apache-2.0
 *
 * Updating rows of a table by number: what scatter ops, segment sums and stitching share. Only
 * files whose names end in _cpu.c use this.
 */
#ifndef TF_OPS_ARRAY_ROWS_H
#define TF_OPS_ARRAY_ROWS_H

#include "exec/device/kernel.h"

enum rows_op {
    ROWS_ADD,
    ROWS_SUB,
    ROWS_SET,
};

/* table[indices[i]] op= values[i] in the order of i, whatever the number of threads. Indices were
 * checked; neither they nor the values are the table's memory. ADD and SUB: floats, where many
 * float32 for one row are summed without losing digits, and integers, which wrap around; SET: any
 * fixed size. ERR_OS: no memory, and nothing is changed. */
int rows_update(struct kernel_call *call, enum rows_op op, struct tensor *table,
                const struct tensor *indices, const struct tensor *values);

#endif
