/* SPDX-License-Identifier: Apache-2.0
 *
 * How what is exchanged crosses, and what that costs. Private to libcommon/pass.
 */
#ifndef TF_PASS_REPLICATE_PLAN_H
#define TF_PASS_REPLICATE_PLAN_H

#include "pass/replicate/replicate_private.h"

/* By which gradients of n workers cross, and, of shards, variables come back: pushes, or sums and
 * rows among workers; and the share of workers that push while others read. */
struct exchange_ways {
    int n;
    struct cost_way sent, read, served_sums, served_rows;
    double pushers_beside;
};

/* ---- techniques ----
 *
 * A technique is a way in which one gradient crosses: a row of replicate_plan.c's table, by enum
 * replicate_crossing. What it makes of the workers' values becomes the exchange's `got`. */
struct technique {
    const char *name; /* as --explain has it */
    /* NULL, or why the value cannot cross so (a null function: it always can); and what that costs.
     */
    const char *(*refuse)(const struct replicator *r, struct exchange *x);
    struct replicate_way (*price)(const struct replicator *r, const struct exchange *x);
    /* To shards: what a worker sends with the push, what the shard makes of what it took, and, once
     * it is known whether the push counts, what the worker keeps. NULL: nothing. */
    void (*push)(struct replicator *r, struct push *push, struct exchange *x);
    void (*take)(struct replicator *r, const struct push *push, struct exchange *x);
    void (*pushed)(struct replicator *r, struct exchange *x, struct edge counts);
    /* Among workers: puts what is exchanged into buckets; and, when all has come, makes of it what
     * updates take. NULL: nothing. */
    void (*reduce)(struct replicator *r, struct buckets *b, struct exchange *x);
    void (*reduced)(struct replicator *r, struct exchange *x);
};
extern const struct technique replicate_factors, replicate_code;

/* replicate_average.c: in place of gradients, the variables that updates write, of which all take
 * the mean every so many steps; before they are exchanged, and when they are, nothing without. */
int replicate_plan_averages(struct replicator *r);
void replicate_begin_averages(struct replicator *r);
int replicate_end_averages(struct replicator *r);

/* replicate_plan.c: finds all that is exchanged, and how each is to cross. */
int replicate_plan(struct replicator *r);

/* replicate_cost.c: finds the ways, once it is known what is exchanged, and the schedule by which
 * whole gradients are summed; what they cost by these. */
void replicate_find_ways(struct replicator *r);
int replicate_choose_schedule(struct replicator *r);
struct replicate_way replicate_price_whole(const struct replicator *r, const struct exchange *x);
void replicate_explain(const struct replicate_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int replicate_find_rates(struct replicator *r); /* how fast a worker's CPU is, as was measured */
double replicate_elements(const struct replicator *r, struct edge edge);
double replicate_bytes(const struct replicator *r, struct edge edge); /* as they cross */
/* The time of a node on a core of its own; in which all workers compute at once what takes each so
 * long on one; and in which shards do, each its part. */
double replicate_node_ns(const struct replicator *r, const struct node *node);
double replicate_workers_ns(const struct replicator *r, double ns);
double replicate_shards_ns(const struct replicator *r, double ns);
/* Rows, or a code, of so many bytes, which each worker has for all others. */
struct replicate_way replicate_gather_way(const struct replicator *r, double bytes);

/* The attributes of what goes by a schedule, up to two: how many these are. */
int replicate_schedule_attrs(struct replicator *r, struct attr *attrs);

#endif
