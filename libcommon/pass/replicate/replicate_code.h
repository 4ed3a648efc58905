/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients that cross in few bits. Private to libcommon/pass.
 */
#ifndef TF_PASS_REPLICATE_CODE_H
#define TF_PASS_REPLICATE_CODE_H

#include "pass/replicate/replicate_private.h"

/* replicate_code.c: NULL, or why it cannot be in code; what that costs; the same for a gradient
 * that is, its code, which is put into a reduction, as is *whole, if that is, and what came of all
 * that it has reduced, with the ranks of its members. */
const char *replicate_find_code(const struct replicator *r, struct edge edge);
struct replicate_way replicate_code_way(const struct replicator *r, int n, struct cost_way way,
                                        struct edge edge);
const struct coded_gradient *replicate_add_code(struct replicator *r, struct edge edge,
                                                struct edge *whole);
/* The code of a value that comes of the gradient, with what it loses in `residual`. */
struct coded_gradient *replicate_code_value(struct replicator *r, struct edge gradient,
                                            struct edge value, struct edge residual);
/* The mean of the codes of some members, who are inputs[1], on a worker; or, where there is one,
 * beside that variable. */
struct edge replicate_decode(struct replicator *r, const struct coded_gradient *coded,
                             const char *suffix, const struct edge inputs[2],
                             const struct shape *shape, const char *variable);
/* Keeps what a value has lost by its code, after the node. */
struct edge replicate_keep(struct replicator *r, const struct coded_gradient *coded,
                           const struct code_edges *coding, const char *suffix);
/* The same for this worker's part of the mean, where that is shared out. */
void replicate_code_mean(struct replicator *r, struct coded_gradient *coded, struct edge members);
void replicate_take_codes(struct replicator *r, struct edge members);
void replicate_keep_lost(struct replicator *r); /* when all reductions are there */
/* Gradients cross whole at first: begins that, if asked to; and, at the end, the update counts. */
void replicate_begin_warm_up(struct replicator *r);
void replicate_end_warm_up(struct replicator *r);

#endif
