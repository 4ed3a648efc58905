/* SPDX-License-Identifier: Apache-2.0
 *
 * Updating rows of a table by number; shared by scatter ops, segment sums and stitching. Only files
 * whose names end in _cpu.c use this.
 */
#ifndef TF_OPS_ARRAY_ROWS_H
#define TF_OPS_ARRAY_ROWS_H

#include "exec/device/kernel.h"

enum rows_op {
    ROWS_ADD,
    ROWS_SUB,
    ROWS_SET,
};

/* table[indices[i]] op= values[i] in the order of i, for any number of threads. Indices must have
 * been checked; neither they nor the values may be the table's memory. ADD and SUB: floats, where
 * many float32 values for one row are summed without loss of digits, and integers, which wrap
 * around; SET: any fixed size. ERR_OS: out of memory, and nothing was changed. */
int rows_update(struct kernel_call *call, enum rows_op op, struct tensor *table,
                const struct tensor *indices, const struct tensor *values);

#endif
