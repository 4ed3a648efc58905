/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows to which many values are added, so that their sums need a wide accumulator. Only files whose
 * names end in _cpu.c use this.
 */
#ifndef TF_OPS_ARRAY_HEAVY_ROWS_H
#define TF_OPS_ARRAY_HEAVY_ROWS_H

#include "exec/device/kernel.h"

/* Numbers the heavy rows from 0 to n-1. They depend only on the indices. */
struct heavy_rows {
    int64_t n;
    bool all;             /* every row is heavy, with its own number */
    int64_t *rows;        /* else by number */
    int32_t *found;       /* a hash table of numbers + 1, by row; 0: nothing */
    uint64_t mask, shift; /* of the table */
};

/* Finds the heavy rows of a table of n_rows. If there are many values per row, all are heavy; else
 * those that occur several times in a scattered sample of an eighth of the indices. */
int heavy_rows_find(struct kernel_call *call, struct heavy_rows *heavy,
                    const struct tensor *indices, int64_t n_rows);

static inline uint64_t heavy_rows_hash(const struct heavy_rows *heavy, int64_t row)
{
    return ((uint64_t)row * 0x9e3779b97f4a7c15u) >> heavy->shift;
}

/* Returns the number of a row; -1: it is not heavy. */
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
