/* SPDX-License-Identifier: Apache-2.0
 *
 * Under which conditions items run, as far as the graph shows it.
 */
#include "base/arena.h"
#include "exec/plan/plan_steps.h"
#include "graph/access_nodes.h"

/* Of copies that the planner made: what is copied for a Merge is copied where it is there, another
 * one runs when its consumer does. */
static void find_copies(const struct plan *plan, int *condition)
{
    for (size_t i = 0; i < plan->items.n; i++) {
        const struct item *item = &plan->items.items[i];
        for (int k = 0; item->flow == FLOW_MERGE && k < item->n_in; k++) {
            int copy = plan_maker(plan, item, k);
            if (copy >= 0 && plan->items.items[copy].builtin == BUILTIN_COPY)
                condition[copy] =
                    frames_edge_condition(plan->graph_frames, plan->graph, item->node->inputs[k]);
        }
        for (int k = 0; k < item->n_in; k++) {
            int copy = item->in[k] < 0 ? -1 : plan_copy_for(plan, item, k);
            if (copy >= 0)
                condition[copy] = condition[i];
        }
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
    find_copies(plan, condition);
    return condition;
}
