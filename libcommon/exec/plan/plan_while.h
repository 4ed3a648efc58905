/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops that run as one item of a plan. Private to libcommon/exec.
 */
#ifndef TF_EXEC_PLAN_WHILE_H
#define TF_EXEC_PLAN_WHILE_H

#include <string.h>

#include "base/map.h"
#include "exec/plan/plan.h"

/* Of a frame: whether it is a loop that runs as one item, whose inputs are what enters it and whose
 * outputs are what leaves it. In an iteration the condition's items come first, then the body's, in
 * one order. */
struct while_loop {
    bool is_item;
    int item;        /* -1: not made yet */
    int n_variables; /* the first inputs; those behind are the same in all iterations */
    int n_inputs;
    int *inputs;     /* values */
    bool *kept;      /* by input: an iteration keeps it */
    int *outputs;    /* by variable: which output its last value is; -1: none */
    int *next;       /* by variable: the value that goes into the next iteration */
    int goes_on;     /* the value that says whether there is one */
    size_t bytes[2]; /* of its arenas */
};

struct plan;

/* plan_while.c: finds the frames of plan->graph, and which of them are loops that can run as one
 * item. ERR_DATA: a value of a loop was to be fetched. */
int plan_find_frames(struct plan *plan, const struct edge *fetches, struct error *err);
/* The frame that the node, an Enter, begins, if it is an item; else FRAME_ROOT. */
int plan_entered_loop(const struct plan *plan, const struct node *node);
/* Whether it only moves values into one of them, or there to the next iteration, so that values
 * of loops are in order. */
bool plan_is_wiring(const struct plan *plan, const struct node *node);
/* Of a node of a loop that is to be prepared: true if it has no item of its own. Its values are
 * then the loop's variables, or what leaves the loop. */
bool plan_add_wiring(struct plan *plan, const struct node *node);
/* Of a node that has an item: what it brings goes into a loop, or the next iteration of one. */
void plan_bind_wiring(struct plan *plan, const struct node *node);

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
