/* SPDX-License-Identifier: Apache-2.0
 *
 * Broadcasting, reduced to rows: dimensions that all operands traverse alike are merged, so that
 * the innermost is as long as possible, and along it an operand either advances by one element or
 * stays. Kernels are written only for such rows. In C and C++.
 */
#ifndef TF_OPS_MATH_BROADCAST_H
#define TF_OPS_MATH_BROADCAST_H

#include <stdbool.h>
#include <stdint.h>

#define BROADCAST_INPUTS_MAX 3
#define BROADCAST_RANK_MAX 8

struct shape;

struct broadcast {
    int rank, n_in;                                            /* rank >= 1 */
    int64_t dims[BROADCAST_RANK_MAX];                          /* outermost first */
    int64_t strides[BROADCAST_INPUTS_MAX][BROADCAST_RANK_MAX]; /* in elements; 0: it stays */
    int64_t count;
};

/* Returns whether the input advances along the innermost dimension. */
static inline bool broadcast_advances(const struct broadcast *plan, int input)
{
    return plan->strides[input][plan->rank - 1] != 0;
}

/* Plans operands whose shapes broadcast to `out`; all shapes are known. */
void broadcast_plan(struct broadcast *plan, const struct shape *out,
                    const struct shape *const *inputs, int n_in);

/* The same of Select's inputs: its condition may be a vector that selects rows. */
void broadcast_plan_select(struct broadcast *plan, const struct shape *out,
                           const struct shape *condition, const struct shape *t,
                           const struct shape *e);

#endif
