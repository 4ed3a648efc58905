/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of a broadcast, one after the other.
 */
#ifndef TF_OPS_MATH_BROADCAST_CPU_H
#define TF_OPS_MATH_BROADCAST_CPU_H

#include "ops/math/broadcast.h"

/* A row or part of one: n elements of output from `out`; each input's first element. */
struct broadcast_row {
    int64_t out, n;
    int64_t in[BROADCAST_INPUTS_MAX];
};

/* Visits the rows of output elements [begin, end). */
struct broadcast_walk {
    const struct broadcast *plan;
    int64_t next, end;
    int64_t index[BROADCAST_RANK_MAX];
    int64_t offset[BROADCAST_INPUTS_MAX]; /* of the current row */
};

void broadcast_start(struct broadcast_walk *walk, const struct broadcast *plan, int64_t begin,
                     int64_t end);
bool broadcast_next(struct broadcast_walk *walk, struct broadcast_row *row);

#endif
