/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of the source, one after the other: those that are cut are there once for each cell.
 */
#include <string.h>

#include "base/memory.h"
#include "graph/group.h"
#include "graph/slice_attr.h"
#include "pass/grid/grid_private.h"

/* A node of the result that stands for one that is not cut, under its name. */
static int is_now(struct grid *g, const struct node *node, struct edge edge, const char *what)
{
    if (!edge_exists(edge))
        return g->err->code;
    rewrite_stand_in(&g->r, node, edge.node);
    rewrite_note(&g->r, node->name, what);
    return graph_rename(g->r.to, graph_node(g->r.to, edge.node), node->name, g->err);
}

/* ---- windows ---- */

/* The shape, of which the batch is that of a value of the cell's if it is unknown. */
static struct edge shape_vector_of(struct build *b, enum dtype type, const struct shape *shape,
                                   struct edge like)
{
    int64_t dims[SHAPE_RANK_MAX] = {0}, first = shape->dims[0] < 0 ? 1 : 0, none = 0, one = 1;
    int n = 0;
    for (int i = (int)first; i < shape->rank; i++)
        dims[n++] = shape->dims[i];
    struct shape length = shape_vector(n);
    int32_t small[SHAPE_RANK_MAX];
    for (int i = 0; i < n; i++)
        small[i] = (int32_t)dims[i];
    struct tensor value = tensor_borrow(type, &length, type == INT32 ? (void *)small : dims);
    struct edge rest = build_const(b, &value);
    if (!first)
        return rest;
    struct attr out = {"out_type", attr_type(type)};
    struct edge batch[] = {build_op(b, "Shape", &like, 1, &out, 1), build_ints(b, &none, 1),
                           build_ints(b, &one, 1)};
    struct edge both[] = {build_op(b, "Slice", batch, 3, NULL, 0), rest};
    return grid_concat(b, 0, both, 2);
}

static struct edge sizes_of(struct grid *g, const struct node *node, int cell,
                            struct grid_area area, struct grid_cut axes, struct edge like)
{
    struct shape shape = node->outputs[0].shape;
    shape.dims[axes.y] = area.y1 - area.y0;
    shape.dims[axes.x] = area.x1 - area.x0;
    return shape_vector_of(grid_builder(g, node, cell, g->devices[cell]), INT32, &shape, like);
}

/* Where the shape of images is to be given, the windows' outputs have their batch. */
static struct edge batch_like(struct grid *g, const struct node *node, int cell,
                              const struct grid_windows *w)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (node->op->def->tiles.inputs[i] == LIES_OUT)
            return grid_take(g, node->inputs[i], w->out, grid_tile(g, w->out, cell), cell);
    return EDGE_NONE;
}

static struct edge window_input_of(struct grid *g, const struct node *node, int i, int cell,
                                   const struct grid_windows *w)
{
    switch (node->op->def->tiles.inputs[i]) {
    case LIES_IN:
        return grid_take(g, node->inputs[i], w->in, grid_region(g, w, cell).area, cell);
    case LIES_OUT:
        return grid_take(g, node->inputs[i], w->out, grid_tile(g, w->out, cell), cell);
    case LIES_FILTERS:
        return grid_take(g, node->inputs[i], w->filters, grid_tile(g, w->filters, cell), cell);
    case LIES_SIZES:
        return sizes_of(g, node, cell, grid_region(g, w, cell).area, w->in,
                        batch_like(g, node, cell, w));
    case LIES_FILTER_SIZES:
        return sizes_of(g, node, cell, grid_tile(g, w->out, cell),
                        (struct grid_cut){.y = 0, .x = 1}, EDGE_NONE);
    case LIES_WHOLE:
        break;
    }
    return grid_local(g, node->inputs[i], cell);
}

static struct edge sum_parts(struct grid *g, const struct node *node, const struct edge *parts)
{
    for (int k = 0; k < g->n; k++)
        if (!edge_exists(parts[k]))
            return EDGE_NONE;
    struct build *b = grid_builder(g, node, -1, grid_device(g, node));
    return build_op(b, "AddN", parts, g->n, NULL, 0);
}

static int visit_tiles(struct grid *g, const struct node *node)
{
    struct grid_windows w;
    struct edge *parts = arena_array(&g->arena, (size_t)g->n, sizeof *parts);
    struct edge *inputs = arena_array(&g->arena, (size_t)node->n_inputs + 1, sizeof *inputs);
    struct grid_area *areas = arena_array(&g->arena, (size_t)g->n, sizeof *areas);
    grid_windows(g, node, &w);
    bool is_padded = op_find_attr(node->op, "explicit_paddings") >= 0;
    for (int k = 0; k < g->n; k++) {
        for (int i = 0; i < node->n_inputs; i++)
            inputs[i] = window_input_of(g, node, i, k, &w);
        /* A tile at the border of the image has the padding that is there. */
        struct grid_region region = grid_region(g, &w, k);
        int64_t *pads = arena_array(&g->arena, 8, sizeof *pads);
        pads[2 * w.in.y] = region.before_y;
        pads[2 * w.in.y + 1] = region.after_y;
        pads[2 * w.in.x] = region.before_x;
        pads[2 * w.in.x + 1] = region.after_x;
        bool none = !region.before_y && !region.after_y && !region.before_x && !region.after_x;
        const struct attr padding[] = {{"padding", attr_string(none ? "VALID" : "EXPLICIT")},
                                       {"explicit_paddings", attr_ints(pads, none ? 0 : 8)}};
        parts[k] = grid_copy(g, node, k, inputs, padding, is_padded ? 2 : 0);
        areas[k] = region.area;
    }
    if (g->err->code)
        return g->err->code;
    if (node->op->def->tiles.output == LIES_WHOLE)
        return is_now(g, node, sum_parts(g, node, parts), "of all tiles");
    if (!grid_stand_in(g, node, parts) && node->op->def->tiles.output == LIES_IN)
        grid_scatter(g, node, w.in, areas, parts);
    return g->err->code;
}

/* ---- the others ---- */

static int visit_alike(struct grid *g, const struct node *node)
{
    struct edge *parts = arena_array(&g->arena, (size_t)g->n, sizeof *parts);
    struct edge *inputs = arena_array(&g->arena, (size_t)node->n_inputs + 1, sizeof *inputs);
    for (int k = 0; k < g->n; k++) {
        for (int i = 0; i < node->n_inputs; i++)
            inputs[i] = grid_operand(g, node, i, k);
        parts[k] = grid_copy(g, node, k, inputs, NULL, 0);
    }
    return grid_stand_in(g, node, parts);
}

/* In a mean each tile counts by its share of the cells. */
static int visit_reduction(struct grid *g, const struct node *node)
{
    struct edge *parts = arena_array(&g->arena, (size_t)g->n, sizeof *parts);
    struct grid_cut in = g->cut[node->inputs[0].node];
    bool is_mean = node->op->def->reduction == REDUCTION_MEAN && !g->cut[node->id].is_cut;
    for (int k = 0; k < g->n; k++) {
        struct edge inputs[] = {g->parts[node->inputs[0].node][k],
                                grid_local(g, node->inputs[1], k)};
        parts[k] = grid_copy(g, node, k, inputs, NULL, 0);
        if (is_mean && edge_exists(parts[k])) {
            struct build *b = grid_builder(g, node, k, g->devices[k]);
            struct grid_area area = grid_tile(g, in, k);
            double share = (double)((area.y1 - area.y0) * (area.x1 - area.x0)) /
                           (double)(in.height * in.width);
            parts[k] = build_binary(b, "Mul", parts[k], build_scalar_like(b, parts[k], share));
        }
    }
    if (g->err->code)
        return g->err->code;
    if (!g->cut[node->id].is_cut)
        return is_now(g, node, sum_parts(g, node, parts), "of all tiles");
    return grid_stand_in(g, node, parts);
}

/* ---- variables of which each cell has a part of its own ---- */

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
    return grid_stand_in(g, node, parts);
}

/* Yes if the answer is yes for each part. */
static int visit_ask(struct grid *g, const struct node *node)
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
    return is_now(g, node, all, "asks each part");
}

/* ---- all ---- */

int grid_visit(struct grid *g, const struct node *node)
{
    switch ((enum grid_role)g->role[node->id]) {
    case GRID_TILES:
        return visit_tiles(g, node);
    case GRID_ALIKE:
    case GRID_UPDATE:
        return visit_alike(g, node);
    case GRID_REDUCE:
        return visit_reduction(g, node);
    case GRID_SHAPE: {
        const struct edge in = node->inputs[0];
        struct build *b = grid_builder(g, node, 0, g->devices[0]);
        return is_now(g, node,
                      shape_vector_of(b, node->outputs[0].type, &grid_output(g, in)->shape,
                                      g->parts[in.node][0]),
                      "of all tiles");
    }
    case GRID_ASK:
        return visit_ask(g, node);
    case GRID_VARIABLE:
        return 0; /* is there */
    case GRID_ONCE:
        break;
    }
    for (int i = 0; i < node->n_inputs; i++)
        grid_whole(g, node->inputs[i]);
    if (g->err->code)
        return g->err->code;
    struct node view = rewrite_view(&g->r, node);
    const char *device = grid_device(g, node);
    view.attrs = copy_attrs(&g->rules, node, -1, 0, &view.n_attrs);
    graph_set_device(g->r.to, rewrite_add(&g->r, node, &view), device);
    return 0;
}
