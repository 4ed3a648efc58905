/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches in a fixed order. Each item has its place and its memory, and is passed over where
 * something that it needs is dead: what a Switch did not choose, and all that is made of it, until
 * a Merge, which brings the memory of the input that is alive. One memory serves all values of
 * which only one is ever alive.
 */
#include "base/arena.h"
#include "exec/plan/plan_steps.h"
#include "graph/access_nodes.h"

/* ---- Merges ---- */

/* The users of a Merge's output are not known as users of the variable. */
int plan_for_merge(struct plan *plan, int v)
{
    bool is_variable = plan->values.items[plan_root_value(plan, v)].kind == VALUE_VARIABLE;
    return is_variable ? plan_add_copy(plan, v) : v;
}

/* ---- conditions ---- */

/* The condition under which an item runs, as far as the graph shows it. */
static int condition_of(const struct plan *plan, int item)
{
    const struct node *node = item < 0 ? NULL : plan->items.items[item].node;
    return node ? plan->graph_frames->condition[node->id] : CONDITION_NONE;
}

/* Finds the conditions of copies that the planner made: a copy for a Merge runs where its value is
 * there, another one when its consumer does. */
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
    for (size_t i = 0; i < plan->items.n; i++)
        condition[i] = condition_of(plan, (int)i);
    find_copies(plan, condition);
    return condition;
}

/* ---- memory ---- */

static bool exclude(const struct frames *frames, int a, int b)
{
    const struct condition *all = frames->conditions.items;
    for (int x = a; x >= 0; x = all[x].parent)
        for (int y = b; y >= 0; y = all[y].parent)
            if (all[x].predicate.node == all[y].predicate.node &&
                all[x].predicate.slot == all[y].predicate.slot && all[x].branch != all[y].branch)
                return true;
    return false;
}

/* Inputs of a Merge in pairs; a value is in one at most, so that it is beside nothing that is there
 * with it. */
void plan_join_branches(struct plan *plan)
{
    if (!plan->has_branches)
        return;
    struct merge_facts *merged = arena_array(&plan->memory, plan->values.n + 1, sizeof *merged);
    plan->merged = merged;
    for (size_t v = 0; v < plan->values.n; v++)
        merged[v].beside = -1;
    for (int at = 0; at < plan->n_order; at++) {
        const struct item *item = &plan->items.items[plan->order[at]];
        if (item->flow != FLOW_MERGE)
            continue;
        merged[item->out[0]].is_merged = true;
        for (int k = 0, a = -1, b; k < item->n_in; k++, a = b) {
            b = plan_root_value(plan, item->in[k]);
            merged[b].is_merged = true;
            if (a >= 0 && plan->values.items[a].kind == VALUE_COMPUTED &&
                plan->values.items[b].kind == VALUE_COMPUTED && merged[a].beside < 0 &&
                merged[b].beside < 0 &&
                exclude(plan->graph_frames, condition_of(plan, plan->values.items[a].item),
                        condition_of(plan, plan->values.items[b].item))) {
                merged[a].beside = b;
                merged[b].beside = a;
            }
        }
    }
}
