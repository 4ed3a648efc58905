/* SPDX-License-Identifier: Apache-2.0
 *
 * Broadcasting, reduced to rows: dimensions that all operands traverse alike are merged, so that
 * the innermost is as long as possible, and along it an operand either advances by one element or
 * stays. Loops are written only for such rows.
 */
#ifndef TF_OPS_MATH_BROADCAST_CPU_H
#define TF_OPS_MATH_BROADCAST_CPU_H

#include "tensor/shape.h"

#define BROADCAST_INPUTS_MAX 3

struct broadcast {
    int rank, n_in;                                        /* rank >= 1 */
    int64_t dims[SHAPE_RANK_MAX];                          /* outermost first */
    int64_t strides[BROADCAST_INPUTS_MAX][SHAPE_RANK_MAX]; /* in elements; 0: it stays */
    int64_t count;
};

/* Plans operands whose shapes broadcast to `out`; all shapes are known. */
void broadcast_plan(struct broadcast *plan, const struct shape *out,
                    const struct shape *const *inputs, int n_in);

/* A row or part of one: n elements of output from `out`; each input's first element. */
struct broadcast_row {
    int64_t out, n;
    int64_t in[BROADCAST_INPUTS_MAX];
};

/* Visits the rows of output elements [begin, end). */
struct broadcast_walk {
    const struct broadcast *plan;
    int64_t next, end;
    int64_t index[SHAPE_RANK_MAX];
    int64_t offset[BROADCAST_INPUTS_MAX]; /* of the current row */
};

void broadcast_start(struct broadcast_walk *walk, const struct broadcast *plan, int64_t begin,
                     int64_t end);
bool broadcast_next(struct broadcast_walk *walk, struct broadcast_row *row);

static inline bool broadcast_advances(const struct broadcast *plan, int input)
{
    return plan->strides[input][plan->rank - 1] != 0;
}

#endif
