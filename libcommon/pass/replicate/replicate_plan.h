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

/* replicate_average.c: replaces gradients by the variables that updates write, of which all take
 * the mean every so many steps. The other two run before and after the exchange, and do nothing
 * without averages. */
int replicate_plan_averages(struct replicator *r);
void replicate_begin_averages(struct replicator *r);
int replicate_end_averages(struct replicator *r);

/* replicate_allreduce.c: adds a value, of the exchange or of NULL, to those that cross together;
 * returns these as a node's inputs, and the attribute of their reductions. */
void replicate_put(struct replicator *r, struct bucket *bucket, const struct exchange *x,
                   struct bucket_value value);
struct edge *replicate_inputs(struct replicator *r, const struct bucket *bucket,
                              struct attr *reductions);
/* Returns what the value crosses in, unless it is coded. */
struct bucket *replicate_bucket(const struct replicator *r, const struct exchange *x);

/* replicate_plan.c: finds all values that are exchanged, and how each crosses. */
int replicate_plan(struct replicator *r);

/* replicate_cost.c: finds the ways, once the exchanged values are known, and the schedule that sums
 * whole gradients; then the cost by these. */
void replicate_find_ways(struct replicator *r);
int replicate_choose_schedule(struct replicator *r);
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

#endif
