/* SPDX-License-Identifier: Apache-2.0
 *
 * What is made of the source only when somebody asks for its value, whole or in parts.
 */
#include "pass/slice/slice_private.h"

#define DEMAND_DEPTH_MAX 64 /* of nodes made on demand, one for another */

static bool may_wait(const struct slicer *s, const struct node *node)
{
    int slicing;
    if (s->role[node->id] != SLICE_NONE || s->r.flags[node->id] & REWRITE_KEPT || !node->n_outputs)
        return false;
    if (slice_is_table(s, (struct edge){node->id, 0}, &slicing))
        return true;
    return node_has(node, OP_RANDOM) || !node_has(node, OP_STATEFUL | OP_CONTROL_FLOW | OP_SOURCE);
}

/* From the end: what nobody needs but tables, and what is made on demand itself. */
void slice_find_on_demand(struct slicer *s)
{
    size_t n = s->from->nodes.n;
    int *level = arena_array(&s->arena, n + 1, sizeof *level);
    char *used = arena_alloc(&s->arena, n + 1);
    for (size_t i = 0; i < s->from->aliases.n; i++)
        level[s->from->aliases.items[i].edge.node] = DEMAND_DEPTH_MAX;
    for (size_t i = n; i-- > 0;) {
        const struct node *node = graph_node(s->from, s->r.order[i]);
        int id = node->id, slicing;
        bool made = s->role[id] != SLICE_NONE;
        bool table = !made && node->n_outputs && slice_is_table(s, (struct edge){id, 0}, &slicing);
        s->on_demand[id] =
            may_wait(s, node) && (table || (used[id] && level[id] < DEMAND_DEPTH_MAX));
        int below = made || table ? 1 : s->on_demand[id] ? level[id] + 1 : DEMAND_DEPTH_MAX;
        for (int k = 0; k < node->n_inputs + node->n_controls; k++) {
            bool data = k < node->n_inputs;
            int from = node_dependency(node, k).node;
            used[from] = 1;
            if (!data)
                below = DEMAND_DEPTH_MAX;
            level[from] = level[from] > below ? level[from] : below;
        }
    }
}
