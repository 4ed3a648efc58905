/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that many values are added to, whose sums are worth a wide accumulator. Only files whose
 * names end in _cpu.c use this.
 */
#ifndef TF_OPS_ARRAY_HEAVY_ROWS_H
#define TF_OPS_ARRAY_HEAVY_ROWS_H

#include "exec/device/kernel.h"

/* Numbers of the heavy rows, 0 .. n-1. They follow from the indices alone. */
struct heavy_rows {
    int64_t n;
    bool all;             /* every row is, under its own number */
    int64_t *rows;        /* else by number */
    int32_t *found;       /* a hash table of numbers + 1, by row; 0: nothing */
    uint64_t mask, shift; /* of the table */
};

/* Finds the heavy rows of a table of n_rows. All rows are heavy where there are many values for
 * each; else those for which an eighth of the indices, taken here and there, has several. */
int heavy_rows_find(struct kernel_call *call, struct heavy_rows *heavy,
                    const struct tensor *indices, int64_t n_rows);

static inline uint64_t heavy_rows_hash(const struct heavy_rows *heavy, int64_t row)
{
    return ((uint64_t)row * 0x9e3779b97f4a7c15u) >> heavy->shift;
}

/* -1: it is not heavy. */
static inline int64_t heavy_rows_number(const struct heavy_rows *heavy, int64_t row)
{
    if (heavy->all)
        return row;
    for (uint64_t at = heavy_rows_hash(heavy, row);; at = (at + 1) & heavy->mask) {
        int64_t number = (int64_t)heavy->found[at] - 1;
        if (number < 0 || heavy->rows[number] == row)
            return number;
    }
}

#endif
