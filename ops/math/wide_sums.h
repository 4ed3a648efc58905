/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of many rows of float32 without loss of digits: a row adds some terms in its own memory,
 * then spills them into doubles beside it and starts again from zero. Only files whose names end in
 * _cpu.c use this.
 */
#ifndef TF_OPS_MATH_WIDE_SUMS_H
#define TF_OPS_MATH_WIDE_SUMS_H

#include "exec/device/kernel.h"

#define WIDE_SUMS_TERMS 32 /* added in a row's own memory before it spills */
#define WIDE_SUMS_SPILLED 0x80

struct wide_sums {
    int64_t n, length; /* rows, and elements of each */
    double *total;     /* of rows that have spilled */
    uint8_t *state;    /* terms since then, and WIDE_SUMS_SPILLED */
};

/* Begins sums of n rows, all empty; the memory belongs to the call. ERR_OS. */
int wide_sums_begin(struct kernel_call *call, struct wide_sums *w, int64_t n, int64_t length);

/* Counts a term of the row with this state; returns whether the row must be spilled. */
static inline bool wide_sums_count(uint8_t *state)
{
    return ++*state % WIDE_SUMS_SPILLED == WIDE_SUMS_TERMS;
}

void wide_sums_spill(const struct wide_sums *w, int64_t i, float *row);

/* Called after a term was added to row i. Several threads may call it, for different rows. */
static inline void wide_sums_added(const struct wide_sums *w, int64_t i, float *row)
{
    if (wide_sums_count(&w->state[i]))
        wide_sums_spill(w, i, row);
}

/* Sets row i to its complete sum. */
void wide_sums_end(const struct wide_sums *w, int64_t i, float *row);

#endif
