/* SPDX-License-Identifier: Apache-2.0
 *
 * What belongs beside a variable although nothing in the graph says so: looking up rows of it, its
 * initial value, and what is computed from it for itself alone. Were it elsewhere, it would travel.
 */
#include <string.h>

#include "graph/walk.h"
#include "pass/place/place_private.h"

/* Nodes that only initial values need are computed once, before the steps. */
bool *place_find_initial(const struct graph *graph, struct arena *arena)
{
    struct graph_walk first = graph_walk_new(arena, graph), later = graph_walk_new(arena, graph);
    vec_each(entry, &graph->entries) {
        graph_walk_entry(strcmp(entry->name, "init") ? &later : &first, entry);
    }
    graph_walk_end(&first, graph);
    graph_walk_end(&later, graph);
    for (size_t i = 0; i < graph->nodes.n; i++)
        first.seen[i] &= !later.seen[i];
    return first.seen;
}

/* ---- what is for one variable alone ---- */

struct nearby {
    struct placer *p;
    bool *initial;
    char *has_variable; /* by root, of the groups before */
    int *user;          /* by node: the group of all that need it; -1: nobody, -2: several */
};

enum { NOBODY = -1, SEVERAL = -2 };

static void count_user(struct nearby *near, int node, int group)
{
    int *user = &near->user[node];
    *user = *user == NOBODY || *user == group ? group : SEVERAL;
}

/* Returns whether all that it needs is there, and something is. */
static bool comes_from(struct nearby *near, const struct node *node, int group)
{
    bool found = false;
    for (int i = 0; i < node->n_inputs; i++) {
        if (!place_is_copied(graph_node(near->p->graph, node->inputs[i].node)) &&
            place_root(near->p, node->inputs[i].node) != group)
            return false;
        found |= !place_is_copied(graph_node(near->p->graph, node->inputs[i].node));
    }
    return found;
}

static bool may_be_with(struct nearby *near, const struct node *node, int group)
{
    const struct placer *p = near->p;
    const struct node *leader = graph_node(p->graph, group);
    uint32_t needed = p->kernel_types[group];
    return (!*node->device || !strcmp(node->device, leader->device)) &&
           (p->kernel_types[node->id] & needed) == needed &&
           !node_has(node, OP_CONTROL_FLOW | OP_SOURCE) && !node_is(node, "Variable");
}

int place_join_near(struct placer *p)
{
    size_t n = p->graph->nodes.n;
    struct nearby near = {.p = p};
    if (!p->placement->cluster)
        return 0;
    for (size_t i = 0; i < n; i++) {
        /* Only the rows that are wanted of a table on a shard travel, unless those are more. */
        const struct node *node = graph_node(p->graph, (int)i);
        if (!cluster_count(p->placement->cluster, SHARD_JOB) || node_rows(node) != ROWS_LOOKUP)
            continue;
        const struct node *read = graph_node(p->graph, node->inputs[0].node);
        const struct node *table =
            node_is(read, "Identity") ? graph_node(p->graph, read->inputs[0].node) : read;
        if (!node_is(table, "Variable") ||
            (*node->device && strcmp(node->device, table->device) != 0))
            continue;
        int64_t found = shape_bytes(&node->outputs[0].shape, node->outputs[0].type);
        if (found <= shape_bytes(&table->outputs[0].shape, table->outputs[0].type))
            place_join(p, table->id, node->id);
    }
    int *order = arena_array(&p->arena, n + 1, sizeof *order);
    near.initial = place_find_initial(p->graph, &p->arena);
    near.has_variable = arena_alloc(&p->arena, n + 1);
    near.user = arena_array(&p->arena, n + 1, sizeof *near.user);
    if (graph_order(p->graph, order, p->err))
        return p->err->code;
    for (size_t i = 0; i < near.p->graph->nodes.n; i++) {
        near.user[i] = NOBODY;
        if (node_is(graph_node(near.p->graph, (int)i), "Variable"))
            near.has_variable[place_root(near.p, (int)i)] = 1;
    }
    vec_each(entry, &near.p->graph->entries) {
        for (int k = 0; k < entry->n_edges; k++)
            near.user[entry->edges[k].node] = SEVERAL;
    }
    /* From the end: a node whose users all are in one group may join it, and so what it needs. */
    for (size_t i = p->graph->nodes.n; i-- > 0;) {
        const struct node *node = graph_node(p->graph, order[i]);
        int group = near.user[node->id];
        bool joins = group >= 0 && near.has_variable[group] && may_be_with(&near, node, group) &&
                     (near.initial[node->id] || comes_from(&near, node, group));
        if (joins && place_root(p, node->id) == node->id) {
            place_join(p, group, node->id);
            near.has_variable[place_root(p, group)] = 1;
        }
        group = place_root(p, node->id);
        for (int k = 0; k < node->n_inputs; k++)
            count_user(&near, node->inputs[k].node, group);
        for (int k = 0; k < node->n_controls; k++)
            count_user(&near, node->controls[k], near.initial[node->id] ? group : SEVERAL);
    }
    return 0;
}
