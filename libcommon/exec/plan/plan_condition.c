/* SPDX-License-Identifier: Apache-2.0
 *
 * Under which conditions items run, as far as the graph shows it.
 */
#include "base/arena.h"
#include "exec/plan/plan_steps.h"
#include "graph/access_nodes.h"

struct conditions {
    const struct plan *plan;
    const struct frames *frames;
    int *condition; /* by item */
};

/* What is copied for a Merge is copied where it is there. */
static void find_copies_for(struct conditions *c, const struct item *merge)
{
    const struct plan *plan = c->plan;
    for (int k = 0; k < merge->n_in; k++) {
        int copy = plan->values.items[merge->in[k]].item;
        if (copy >= 0 && plan->items.items[copy].builtin == BUILTIN_COPY)
            c->condition[copy] =
                frames_edge_condition(c->frames, plan->graph, merge->node->inputs[k]);
    }
}

/* A copy that the planner made for one consumer runs when that does. */
static void find_copies(struct conditions *c)
{
    const struct plan *plan = c->plan;
    for (size_t i = 0; i < plan->items.n; i++)
        if (plan->items.items[i].flow == FLOW_MERGE)
            find_copies_for(c, &plan->items.items[i]);
    for (size_t i = 0; i < plan->items.n; i++)
        for (int k = 0; k < plan->items.items[i].n_in; k++) {
            int copy =
                plan->items.items[i].in[k] < 0 ? -1 : plan_copy_for(plan, &plan->items.items[i], k);
            if (copy >= 0)
                c->condition[copy] = c->condition[i];
        }
}

const int *plan_find_conditions(const struct plan *plan, struct access_graph *graph,
                                struct arena *memory)
{
    const struct frames *frames = plan->graph_frames;
    if (!frames)
        return NULL;
    access_name_conditions(graph, frames);
    int *condition = arena_array(memory, plan->items.n + 1, sizeof *condition);
    for (size_t i = 0; i < plan->items.n; i++) {
        const struct node *node = plan->items.items[i].node;
        condition[i] = node ? frames->condition[node->id] : CONDITION_NONE;
    }
    find_copies(&(struct conditions){plan, frames, condition});
    return condition;
}
