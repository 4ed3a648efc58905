/* SPDX-License-Identifier: Apache-2.0
 *
 * How each value that is exchanged crosses, and what that costs. Private to libcommon/pass.
 */
#ifndef TF_PASS_REPLICATE_PLAN_H
#define TF_PASS_REPLICATE_PLAN_H

#include "pass/replicate/replicate_private.h"

/* How gradients of n workers cross and, with shards, variables come back: pushes, or sums and rows
 * among workers; and the share of workers that push while others read. */
struct exchange_ways {
    int n;
    struct cost_way sent, read, served_sums, served_rows;
    double pushers_beside;
};

/* ---- techniques ----
 *
 * A technique is a way in which one gradient crosses: a row of replicate_plan.c's table, by enum
 * replicate_crossing. Its combination of the workers' values becomes the exchange's `got`. */
struct technique {
    const char *name; /* in --explain */
    /* Returns NULL, or why the value cannot cross so (absent: it always can); its cost. */
    const char *(*refuse)(const struct replicator *r, struct exchange *x);
    struct cost_sum (*price)(const struct replicator *r, const struct exchange *x);
    /* Sends what crosses, with the exchange's push or in buckets. */
    void (*send)(struct replicator *r, struct exchange *x);
    /* Makes the value for updates of what has crossed. NULL: that is it. */
    void (*take)(struct replicator *r, struct exchange *x);
    /* Keeps what the worker needs later; `counts`, of a push: whether it does. NULL: nothing. */
    void (*keep)(struct replicator *r, struct exchange *x, struct edge counts);
};
extern const struct technique replicate_whole, replicate_factors, replicate_code;

/* Replaces gradients by the variables that updates write, of which all take the mean every so many
 * steps. */
int replicate_plan_averages(struct replicator *r);

/* replicate_allreduce.c: adds a value, of the exchange or of NULL, to those that cross together;
 * returns these as a node's inputs, and the attribute of their reductions. */
void replicate_put(struct replicator *r, struct bucket *bucket, const struct exchange *x,
                   struct bucket_value value);
struct edge *replicate_inputs(struct replicator *r, const struct bucket *bucket,
                              struct attr *reductions);
/* Returns what the value crosses in, unless it is coded. */
struct bucket *replicate_bucket(const struct replicator *r, const struct exchange *x);

/* replicate_plan.c: finds all values that are exchanged, and how each crosses; the cost of one that
 * crosses whole. */
int replicate_plan(struct replicator *r);
struct cost_sum replicate_price_whole(const struct replicator *r, const struct exchange *x);
void replicate_explain(const struct replicate_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int replicate_find_rates(struct replicator *r); /* measured speed of a worker's CPU */
double replicate_bytes(const struct replicator *r, struct edge edge); /* as they cross */
/* The time of a node on a core of its own; the time when all workers at once compute what takes
 * `ns` on one; and the time when the shards do, each its part. */
double replicate_node_ns(const struct replicator *r, const struct node *node);
double replicate_workers_ns(const struct replicator *r, double ns);
double replicate_shards_ns(const struct replicator *r, double ns);
/* The cost of gathering rows, or a code: each worker sends `bytes` to all others. */
struct cost_sum replicate_gather_way(const struct replicator *r, double bytes);

/* Stores up to two attributes of nodes that use the schedule; returns their number. */
int replicate_schedule_attrs(struct replicator *r, struct attr *attrs);

/* ---- workers without shards ---- */

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

/* Exchanges the codes of the buckets, and decodes them. */
int replicate_exchange_codes(struct replicator *r);

/* Adds updates by pieces in place of the node, if it is an update by a gradient that crossed so. */
bool replicate_copy_pieces(struct replicator *r, const struct node *node);

/* ---- workers with shards ---- */

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

/* Return the worker's value, summed over steps where several share a push; and a factor of it, with
 * the rows of those steps. */
struct edge replicate_pushed(struct replicator *r, struct exchange *x);
struct edge replicate_factor(struct replicator *r, const struct exchange *x, int i);
/* Returns the flag for the update; dead in steps without a push. */
struct edge replicate_due_to_push(struct replicator *r, struct edge flag);
/* Checks, once it is planned how gradients cross, that sums over steps are possible. */
int replicate_check_sums(struct replicator *r);

#endif
