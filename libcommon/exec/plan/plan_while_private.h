/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that take loops out of a plan's graph share. Private to exec/plan.
 */
#ifndef TF_EXEC_PLAN_WHILE_PRIVATE_H
#define TF_EXEC_PLAN_WHILE_PRIVATE_H

#include "exec/plan/plan_steps.h"
#include "graph/frames.h"

struct while_search {
    struct plan *plan;
    const struct graph *graph;
    struct frames *frames;
    int *order;
    int *top;      /* by node: the outermost loop that it runs in; FRAME_ROOT: none */
    bool *refused; /* by frame, of outermost loops */
    bool *begun;   /* by node: it comes after what only an iteration that goes on has */
    bool *reached; /* by node: what leaves its loop needs it */
};

/* plan_while_find.c: fills the rest when plan, graph, frames and room for the others are there. */
int while_find(struct while_search *s, const struct edge *fetches, struct error *err);
/* The outermost loop that an Enter, which runs outside of it, begins; FRAME_ROOT: none. */
int while_entered(const struct while_search *s, const struct node *node);
bool while_can_go(const struct while_search *s, int frame);

/* plan_while_graph.c: the plan's graph with a node for each such loop; `fetches` follow. */
void while_take_out(struct while_search *s, struct edge *fetches);

#endif
