/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients that cross in few bits. Private to libcommon/pass.
 */
#ifndef TF_PASS_REPLICATE_CODE_H
#define TF_PASS_REPLICATE_CODE_H

#include "pass/replicate/replicate_private.h"

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

#endif
