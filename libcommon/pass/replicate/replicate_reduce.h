/* SPDX-License-Identifier: Apache-2.0
 *
 * Buckets of values that workers without shards reduce; and codes, which shards also get. Private
 * to libcommon/pass.
 */
#ifndef TF_PASS_REPLICATE_REDUCE_H
#define TF_PASS_REPLICATE_REDUCE_H

#include "pass/replicate/replicate_plan.h"

/* Gradients that are coded later cross with the rest until then, unless there is a warm-up: then
 * either the codes or the whole gradients cross. */
struct buckets {
    struct bucket plain, codes, whole;
    exchange_list coded, late; /* exchanges in code; whole ones of the step before */
};

/* Adds the node that reduces a bucket's values together, and empties the bucket. */
int replicate_reduce(struct replicator *r, const char *name, struct bucket *bucket);
static inline const char *replicate_bucket_name(const struct replicator *r)
{
    return r->options->average ? ALLREDUCE_SCOPE "averages" : ALLREDUCE_SCOPE "gradients";
}
/* Returns the value that the worker exchanges: its own, or that of the step before. The latter's
 * result is settled: updates wait for all of the step that reads variables. */
struct edge replicate_exchanged(struct replicator *r, struct exchange *x);
void replicate_settle(struct replicator *r, struct exchange *x);
/* Returns whether the node gives a variable its initial value, or takes a worker's part of one. */
bool replicate_is_initializer(const struct replicator *r, const struct node *node);

/* ---- quantized gradients: replicate_code.c ---- */

/* A code in the result: the value, the residual of its codes, whose rows begin with group `first`,
 * and the code. */
struct code_edges {
    struct edge value, residual, first, code;
};

struct coded_gradient {
    struct code_edges own; /* of the worker's gradient */
    bool is_shared_out;    /* each worker averages a part, and codes this mean: */
    struct code_edges mean;
    int64_t groups;
    struct attr attrs[5];            /* of the code */
    struct edge codes, means, whole; /* of all workers: of `own`, of `mean`, uncoded */
    struct edge is_coded;            /* with shards and a warm-up: which of the two was sent */
};

struct edge replicate_quantize(struct replicator *r, const struct exchange *x, const char *name,
                               const struct code_edges *coding);
/* Keeps what a value has lost by its code. */
struct edge replicate_keep(struct replicator *r, const struct exchange *x,
                           const struct code_edges *coding, const char *suffix);

/* Warm-up among workers: gradients cross whole at first. The second adds the count of updates. */
void replicate_begin_warm_up(struct replicator *r);
void replicate_end_warm_up(struct replicator *r);
/* Exchanges the codes of the buckets, and decodes them. */
int replicate_exchange_codes(struct replicator *r);

/* ---- large gradients of products in pieces: replicate_pieces.c ---- */

/* Returns the rows of a piece of a gradient that crosses whole; 0: no pieces. */
int64_t replicate_piece_rows(const struct replicator *r, const struct exchange *x);
/* Makes the pieces of a gradient, and reduces them; a smaller priority goes first, 0: none. */
void replicate_reduce_pieces(struct replicator *r, struct exchange *x, int priority);
/* Adds updates by these pieces in place of the node, if the node is an update by the gradient. */
bool replicate_copy_pieces(struct replicator *r, const struct node *node);

#endif
