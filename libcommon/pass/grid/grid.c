/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of the source, one after the other: those that are cut are there once for each cell.
 */
#include "pass/grid/grid.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graph/device_name.h"
#include "graph/group.h"
#include "graph/prefix.h"
#include "graph/slice_attr.h"
#include "pass/grid/grid_private.h"

/* ---- devices, names, groups ---- */

const char *grid_device(const struct grid *g, const struct node *node)
{
    const struct attr_value *groups = node_attr(node, "_class");
    const struct node *leader = groups && groups->kind == ATTR_LIST_STRING && groups->n
                                    ? group_leader(g->from, groups->strings[0])
                                    : NULL;
    if (leader && g->cut[leader->id].is_cut)
        return g->devices[0];
    if (*node->device)
        return node->device;
    return leader && *leader->device ? leader->device : g->devices[0];
}

static const char *name_in_cell(struct grid *g, const char *name, int cell)
{
    return arena_printf(&g->r.to->arena, "%s_%d/%s", g->prefix, cell, name);
}

struct build *grid_builder(struct grid *g, const struct node *node, int cell, const char *device)
{
    const char *scope = cell < 0 ? arena_printf(&g->arena, "%s/%s", g->prefix, node->name)
                                 : name_in_cell(g, node->name, cell);
    g->b = (struct build){.graph = g->r.to,
                          .scope = scope,
                          .device = device,
                          .file = node->file,
                          .line = node->line,
                          .err = g->err,
                          .failed = g->err->code != 0};
    return &g->b;
}

/* ---- copies ---- */

/* Groups of variables that are cut become those of their parts; who was with another node that is
 * cut has a device already. */
static const char *leader_of_cell(void *context, const struct node *leader, int cell)
{
    const struct grid *g = context;
    if (g->names[leader->id])
        return g->names[leader->id][cell < 0 ? 0 : cell];
    return g->cut[leader->id].is_cut || cell > 0 ? NULL : leader->name;
}

/* A gradient is handed over for the part of the variable. */
static bool grid_keeps(void *context, const struct node *node, int cell, struct attr *attr)
{
    const struct grid *g = context;
    (void)node;
    if (cell < 0 || strcmp(attr->name, "_gradient") != 0 || attr->value.kind != ATTR_STRING)
        return true;
    const struct node *variable = graph_find(g->from, attr->value.s);
    bool cut = variable && g->names[variable->id];
    if (cut)
        attr->value = attr_string(g->names[variable->id][cell]);
    return cut;
}

struct edge grid_copy(struct grid *g, const struct node *node, int cell, const struct edge *inputs,
                      const struct attr *more, int n_more)
{
    const char **names = g->names[node->id];
    const struct rewrite_copy copy = {.node = node,
                                      .k = cell,
                                      .name =
                                          names ? names[cell] : name_in_cell(g, node->name, cell),
                                      .device = g->devices[cell],
                                      .inputs = inputs,
                                      .n_inputs = node->n_inputs,
                                      .more = more,
                                      .n_more = n_more};
    for (int i = 0; i < node->n_inputs; i++)
        if (g->err->code || !edge_exists(inputs[i]))
            return EDGE_NONE;
    return rewrite_add_copy(&g->r, &g->rules, &copy, g->err);
}

/* Unless something has failed: parts are the node's from now on, and stand for it to those that
 * wait for it. */
static int stand_in(struct grid *g, const struct node *node, struct edge *parts)
{
    if (g->err->code)
        return g->err->code;
    rewrite_await_parts(&g->r, node, parts, g->n);
    rewrite_note(&g->r, node->name, "cut into tiles");
    g->parts[node->id] = parts;
    return 0;
}

/* ---- parts of tensors ---- */

/* The area along those of the two axes that there are. */
struct edge grid_slice(struct build *b, struct edge from, struct grid_cut cut,
                       struct grid_area area)
{
    int64_t begin[SHAPE_RANK_MAX] = {0}, size[SHAPE_RANK_MAX];
    int rank = build_shape(b, from)->rank;
    for (int i = 0; i < rank; i++)
        size[i] = -1;
    if (cut.y >= 0) {
        begin[cut.y] = area.y0;
        size[cut.y] = area.y1 - area.y0;
    }
    if (cut.x >= 0) {
        begin[cut.x] = area.x0;
        size[cut.x] = area.x1 - area.x0;
    }
    struct edge inputs[] = {from, build_ints(b, begin, rank), build_ints(b, size, rank)};
    return build_op(b, "Slice", inputs, 3, NULL, 0);
}

struct edge grid_concat(struct build *b, int axis, const struct edge *parts, int n)
{
    struct edge inputs[GRID_CELLS_MAX + 1];
    if (n == 1)
        return parts[0];
    inputs[0] = build_scalar(b, INT32, axis);
    memcpy(inputs + 1, parts, (size_t)n * sizeof *parts);
    return build_op(b, "Concat", inputs, n + 1, NULL, 0);
}

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
    case LIES_SIZES: {
        /* Where the shape of images is to be given, the windows' outputs have their batch. */
        struct edge like = EDGE_NONE;
        for (int k = 0; k < node->n_inputs && !edge_exists(like); k++)
            if (node->op->def->tiles.inputs[k] == LIES_OUT)
                like = grid_take(g, node->inputs[k], w->out, grid_tile(g, w->out, cell), cell);
        return sizes_of(g, node, cell, grid_region(g, w, cell).area, w->in, like);
    }
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
    if (!stand_in(g, node, parts) && node->op->def->tiles.output == LIES_IN)
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
    return stand_in(g, node, parts);
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
    return stand_in(g, node, parts);
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

static int visit_variable(struct grid *g, const struct node *node)
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
    return stand_in(g, node, parts);
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

static int visit(struct grid *g, const struct node *node)
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

/* ---- the graph ---- */

bool grid_parse(struct grid_options *options, const char *text)
{
    int end = 0;
    *options = (struct grid_options){.rows = 0};
    return sscanf(text, "%4dx%4d%n", &options->rows, &options->columns, &end) == 2 && !text[end] &&
           options->rows > 0 && options->columns > 0 && options->rows * options->columns >= 2 &&
           options->rows * options->columns <= GRID_CELLS_MAX;
}

static int open_grid(struct grid *g)
{
    const char *pattern = g->options->device ? g->options->device : "/job:worker/task:*";
    size_t n = g->from->nodes.n + 1;
    g->devices = arena_array(&g->arena, (size_t)g->n, sizeof *g->devices);
    g->role = arena_alloc(&g->arena, n);
    g->stays_whole = arena_alloc(&g->arena, n);
    g->cut = arena_array(&g->arena, n, sizeof *g->cut);
    g->parts = arena_array(&g->arena, n, sizeof *g->parts);
    g->names = arena_array(&g->arena, n, sizeof *g->names);
    g->prefix = graph_free_prefix(&g->r.to->arena, g->from, "tile");
    for (int k = 0; k < g->n; k++) {
        /* The pattern with the cell's number for its "*". */
        struct device_name name;
        struct error why = ERROR_INIT;
        const char *text = strchr(pattern, '*') ? device_pattern_text(&g->arena, pattern, k) : NULL;
        if (!text)
            return error_set(g->err, ERR_USAGE,
                             "--towers '%s' is no device with a '*' for the cell's number",
                             pattern);
        if (device_name_parse(&name, text, &why))
            return error_set(g->err, ERR_USAGE, "--towers '%s': %s", pattern, why.text);
        g->devices[k] = device_name_text(&g->r.to->arena, &name);
    }
    return 0;
}

static int build(struct grid *g, struct graph **to)
{
    int code = open_grid(g);
    bool found = false;
    g->rules = (struct copy_rules){g->from, g->r.to, leader_of_cell, grid_keeps, g};
    if (!code)
        code = grid_find(g);
    if (!code)
        for (size_t i = 0; i < g->from->nodes.n; i++)
            found |= g->role[i] == GRID_TILES;
    if (!code && !found)
        code = error_set(g->err, ERR_DATA,
                         "no op with windows has images of known size that %d x %d tiles can be "
                         "cut of",
                         g->rows, g->columns);
    for (size_t i = 0; !code && i < g->from->nodes.n; i++)
        if (g->role[i] == GRID_VARIABLE)
            code = visit_variable(g, graph_node(g->from, (int)i));
    for (size_t i = 0; !code && i < g->from->nodes.n; i++)
        code = visit(g, graph_node(g->from, g->r.order[i]));
    if (!code) {
        /* Nodes that entries, aliases or the script name are made whole. */
        const struct graph *from = g->from;
        for (size_t i = 0; i < from->entries.n; i++)
            for (int k = 0; k < from->entries.items[i].n_edges; k++)
                if (from->entries.items[i].edges[k].slot != CONTROL_SLOT)
                    grid_whole(g, from->entries.items[i].edges[k]);
        for (size_t i = 0; i < from->aliases.n; i++)
            if (from->aliases.items[i].edge.slot != CONTROL_SLOT)
                grid_whole(g, from->aliases.items[i].edge);
        graph_each(node, from) {
            if (g->cut[node->id].is_cut && node->n_outputs == 1 && !node->outputs[0].is_ref &&
                !strchr(node->name, '/') && rewrite_has_own_name(&g->r, node))
                grid_whole(g, (struct edge){node->id, 0});
        }
        code = g->err->code;
    }
    return rewrite_finish(&g->r, code, to, g->err);
}

int grid_graph(const struct graph *from, const struct grid_options *options, struct graph **to,
               struct error *err)
{
    const struct pass_options pass = {.note = options->note, .context = options->context};
    struct grid g = {.from = from,
                     .options = options,
                     .rows = options->rows,
                     .columns = options->columns,
                     .n = options->rows * options->columns,
                     .err = err};
    *to = NULL;
    int code = frames_new(from, &g.frames, err);
    if (!code) {
        code = rewrite_open(&g.r, from, &pass, err);
        if (!code)
            code = build(&g, to);
        frames_free(g.frames);
    }
    arena_release(&g.arena);
    return code;
}
