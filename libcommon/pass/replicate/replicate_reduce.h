/* SPDX-License-Identifier: Apache-2.0
 *
 * What workers without shards reduce, some values at a time; and codes, which shards get, too.
 * Private to libcommon/pass.
 */
#ifndef TF_PASS_REPLICATE_REDUCE_H
#define TF_PASS_REPLICATE_REDUCE_H

#include "pass/replicate/replicate_plan.h"

/* A value of an AllReduce in the making, of the result: the worker's, and where what all have is
 * to be noted. */
struct bucket_value {
    struct edge value;
    const char *reduction;
    struct edge *got;
};

struct bucket {
    VEC(struct bucket_value) values;
    int64_t bytes;
    int priority;    /* of the most urgent; 0: of none */
    bool is_late;    /* it has values of the step before */
    bool is_initial; /* it has initial values, which are not of a step; */
    bool is_whole;   /* or gradients of a warm-up, of which nothing is lost */
};

/* Gradients that cross in code later do so with the rest until then, unless there is a warm-up:
 * then there are either codes or whole gradients. */
struct buckets {
    struct bucket plain, codes, whole;
    exchange_list coded, late; /* what they have in code; whole, of the step before */
};

/* Adds a value, which is of the exchange, or NULL; and the node that reduces a bucket's values as
 * one: the bucket is empty then. */
void replicate_put(struct replicator *r, struct bucket *bucket, const struct exchange *x,
                   struct bucket_value value);
int replicate_reduce(struct replicator *r, const char *name, struct bucket *bucket);
static inline const char *replicate_bucket_name(const struct replicator *r)
{
    return r->options->average ? ALLREDUCE_SCOPE "averages" : ALLREDUCE_SCOPE "gradients";
}
/* A technique's way to reduce: the gradient as it is. */
void replicate_reduce_whole(struct replicator *r, struct buckets *b, struct exchange *x);
/* What the worker exchanges: its own value, or that of the step before; what came of the latter is
 * for updates, which wait for what the step reads. */
struct edge replicate_exchanged(struct replicator *r, struct exchange *x);
void replicate_settle(struct replicator *r, struct exchange *x);
/* Returns whether it gives a variable its initial value, or takes a worker's part of one. */
bool replicate_is_initializer(const struct replicator *r, const struct node *node);

/* ---- gradients in few bits: replicate_code.c ---- */

/* A code in the result: the value, what its codes have lost, of which its own begins with group
 * `first`, and the code. */
struct code_edges {
    struct edge value, residual, first, code;
};

struct coded_gradient {
    struct code_edges own; /* the worker's gradient */
    bool is_shared_out;    /* each worker adds its part of what all have, and codes the mean: */
    struct code_edges mean;
    int64_t groups;
    struct attr attrs[5];            /* of the code */
    struct edge codes, means, whole; /* of all workers: of `own`, of `mean`, uncoded */
};

struct edge replicate_quantize(struct replicator *r, const struct exchange *x, const char *name,
                               const struct code_edges *coding);
/* Keeps what a value has lost by its code. */
struct edge replicate_keep(struct replicator *r, const struct exchange *x,
                           const struct code_edges *coding, const char *suffix);

/* Among workers gradients cross whole at first: begins that, if asked to; and, at the end, the
 * update counts. */
void replicate_begin_warm_up(struct replicator *r);
void replicate_end_warm_up(struct replicator *r);
/* Exchanges the codes that are in the buckets, and takes what they stand for. */
int replicate_exchange_codes(struct replicator *r, struct buckets *buckets);

/* ---- large gradients of products in pieces: replicate_pieces.c ---- */

/* Rows of a piece of a gradient that crosses whole; 0: it is not in pieces. */
int64_t replicate_piece_rows(const struct replicator *r, const struct exchange *x);
/* Makes the pieces of such a gradient, and reduces them; a smaller priority goes first, 0: none. */
void replicate_reduce_pieces(struct replicator *r, struct exchange *x, int priority);
/* Adds the updates by these pieces in place of the node, if that is an update by one. */
bool replicate_copy_pieces(struct replicator *r, const struct node *node);

#endif
