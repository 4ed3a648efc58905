/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops that run as one item of a plan. Private to libcommon/exec.
 */
#ifndef TF_EXEC_PLAN_WHILE_H
#define TF_EXEC_PLAN_WHILE_H

#include <string.h>

#include "base/map.h"
#include "exec/plan/plan.h"

/* A loop that runs as one item, whose inputs are what enters it and whose outputs are what leaves
 * it. What an iteration computes are plans of their own. */
struct while_loop {
    const char *frame;   /* its name */
    uint64_t key;        /* while_key */
    int node;            /* of plan->graph; those of a plan's loops come one after the other */
    struct graph *graph; /* what is in the loop, and enters it */
    int n_variables;     /* the first inputs; those behind are the same in all iterations */
    int n_inputs;
    int *outputs;            /* by variable: which output its last value is; -1: none */
    struct plan_feed *feeds; /* of both plans, which are of `graph` */
    int *given;              /* by feed: which input's value; WHILE_GIVEN_... */
    int n_feeds;
    struct edge goes_on;     /* what LoopCond is given */
    struct edge *next;       /* by variable: what NextIteration is given */
    int *targets, n_targets; /* what has to be over besides */
    struct plan *condition, *body;
    bool *kept; /* by input: an iteration keeps it; NULL: not known yet */
};

enum { WHILE_GIVEN_INDEX = -1, WHILE_GIVEN_TRUE = -2 };

/* plan_while.c: takes out of plan->graph the loops that can run as one item; `fetch_edges` follow.
 */
int plan_take_loops(struct plan *plan, struct edge *fetch_edges, struct error *err);
/* The loop that the node stands for; NULL: it is no such node. */
struct while_loop *plan_while_of(const struct plan *plan, const struct node *node);
/* ERR_INTERNAL, with plan->keeps_more set: it has points nevertheless. */
int plan_compile_while(struct plan *plan, struct while_loop *loop, struct error *err);
void while_free(struct while_loop *loop);
/* What tells a loop from all others of its plan, and is the same in every plan that has a part of
 * it. */
static inline uint64_t while_key(const char *frame)
{
    return hash_bytes(frame, strlen(frame), 0);
}

/* What tells an iteration from all others of the step, by the same of the iteration around it. */
static inline uint64_t while_iteration(uint64_t outer, uint64_t key, int64_t number)
{
    uint64_t path[] = {outer, key, (uint64_t)number + 1};
    uint64_t hash = hash_bytes(path, sizeof path, 0);
    return hash ? hash : 1;
}

#endif
