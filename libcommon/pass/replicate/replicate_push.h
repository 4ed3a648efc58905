/* SPDX-License-Identifier: Apache-2.0
 *
 * Pushes of workers to shards, and the state that workers keep. Private to libcommon/pass.
 */
#ifndef TF_PASS_REPLICATE_PUSH_H
#define TF_PASS_REPLICATE_PUSH_H

#include "pass/replicate/replicate_plan.h"

/* The pushes with gradients of one interval. */
struct due {
    int steps;
    struct edge due, taken; /* in the result: whether this push is one of them; for the update */
};

/* A private variable of a worker that checkpoints contain, in the result; the gradient that it is
 * for; and its value after a push, whether that counts or not, or EDGE_NONE. */
struct own_state {
    const struct exchange *of;
    struct edge variable, next;
};

/* A worker's own copy of a variable. */
struct local_copy {
    const struct node *variable; /* of the source */
    struct edge copy, used;      /* in the result: the copy, and the value that the step uses */
};

/* State that a worker with shards keeps for itself, in the result. */
struct worker_own {
    struct edge fetches, fires; /* downpour, accumulation: whether this step fetches, pushes; or
                                 * EDGE_NONE */
    VEC(struct due) dues;       /* one for each interval */
    struct edge pushed_before;  /* number of pushes so far */
    struct edge pushed;         /* the same with this one */
    node_list held;             /* nodes that come after the reply to a push */
    VEC(struct own_state) states;
    VEC(struct local_copy) locals;
};

/* Makes the graph of workers with shards, except names. */
int replicate_shards(struct replicator *r);
/* Adds an op of the clock, whose inputs `spec` has; then the one by which a worker joins, and the
 * entry leave. */
int replicate_clock(struct replicator *r, const char *name, struct node_spec spec);
int replicate_add_join(struct replicator *r);

/* Return the worker's value, summed over steps where several share a push; and a factor of it, with
 * the rows of those steps. */
struct edge replicate_pushed(struct replicator *r, struct exchange *x);
struct edge replicate_factor(struct replicator *r, const struct exchange *x, int i);
/* Returns the flag for the update; dead in steps without a push. */
struct edge replicate_due_to_push(struct replicator *r, struct edge flag);
/* Checks, once it is planned how gradients cross, that sums over steps are possible. */
int replicate_check_sums(struct replicator *r);
/* Returns the edge that a worker's node reads for an edge of the source. */
struct edge replicate_read(struct replicator *r, const struct node *reader, struct edge edge);

#endif
