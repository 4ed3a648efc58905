/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables of which each cell has a part of its own.
 */
#include "graph/group.h"
#include "graph/slice_attr.h"
#include "pass/grid/grid_private.h"

/* Slots are with their variables: names are known before the first of them is made. */
static void name_parts(struct grid *g, const struct node *node)
{
    if (g->names[node->id])
        return;
    g->names[node->id] = arena_array(&g->arena, (size_t)g->n, sizeof **g->names);
    for (int k = 0; k < g->n; k++)
        g->names[node->id][k] = rewrite_part_name(&g->r, node->name, k);
}

int grid_visit_variable(struct grid *g, const struct node *node)
{
    struct edge *parts = arena_array(&g->arena, (size_t)g->n, sizeof *parts);
    const struct shape *whole = &node->outputs[0].shape;
    struct grid_cut cut = g->cut[node->id];
    name_parts(g, node);
    const struct attr_value *groups = node_attr(node, "_class");
    for (int i = 0; groups && groups->kind == ATTR_LIST_STRING && i < groups->n; i++) {
        const struct node *leader = group_leader(g->from, groups->strings[i]);
        if (leader && g->role[leader->id] == GRID_VARIABLE)
            name_parts(g, leader);
    }
    for (int k = 0; k < g->n; k++) {
        struct grid_area area = grid_tile(g, cut, k);
        struct shape *shape = arena_alloc(&g->arena, sizeof *shape);
        int64_t *offset = arena_array(&g->arena, (size_t)whole->rank, sizeof *offset);
        *shape = *whole;
        shape->dims[cut.y] = area.y1 - area.y0;
        shape->dims[cut.x] = area.x1 - area.x0;
        offset[cut.y] = area.y0;
        offset[cut.x] = area.x0;
        const struct attr attrs[] = {{"shape", attr_shape(shape)},
                                     {SLICE_OF, attr_string(node->name)},
                                     {SLICE_SHAPE, attr_shape(whole)},
                                     {SLICE_OFFSET, attr_ints(offset, whole->rank)}};
        parts[k] = grid_copy(g, node, k, NULL, attrs, 4);
    }
    if (g->err->code)
        return g->err->code;
    g->parts[node->id] = parts;
    grid_stand_in(g, node, parts);
    return 0;
}

/* Yes if the answer is yes for each part. */
int grid_visit_ask(struct grid *g, const struct node *node)
{
    struct edge all = EDGE_NONE;
    struct edge *parts = arena_array(&g->arena, (size_t)g->n, sizeof *parts);
    for (int k = 0; k < g->n; k++)
        parts[k] = grid_copy(g, node, k, &g->parts[node->inputs[0].node][k], NULL, 0);
    if (g->err->code)
        return g->err->code;
    struct build *b = grid_builder(g, node, -1, g->devices[0]);
    for (int k = 0; k < g->n; k++)
        all = k ? build_binary(b, "LogicalAnd", all, parts[k]) : parts[k];
    if (!edge_exists(all))
        return g->err->code;
    rewrite_stand_in(&g->r, node, all.node);
    rewrite_note(&g->r, node->name, "asks each part");
    return graph_rename(g->r.to, graph_node(g->r.to, all.node), node->name, g->err);
}
