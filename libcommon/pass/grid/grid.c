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
#include "pass/grid/grid_private.h"

/* ---- devices, names, groups ---- */

/* Where what is there once is. */
static const char *device_once(const struct grid *g, const struct node *node)
{
    const struct node *leader = group_first_leader(g->from, node);
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

struct build *grid_builder(struct grid *g, const struct node *node, int cell)
{
    const char *scope = cell < 0 ? arena_printf(&g->r.arena, "%s/%s", g->prefix, node->name)
                                 : name_in_cell(g, node->name, cell);
    g->b = (struct build){.graph = g->r.to,
                          .scope = scope,
                          .device = cell < 0 ? device_once(g, node) : g->devices[cell],
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
    const struct rewrite_copy copy = {.node = node,
                                      .k = cell,
                                      .name = name_in_cell(g, node->name, cell),
                                      .device = g->devices[cell],
                                      .inputs = inputs,
                                      .n_inputs = node->n_inputs,
                                      .more = more,
                                      .n_more = n_more};
    return rewrite_add_copy(&g->r, &copy);
}

static struct edge *new_edges(struct grid *g, int n)
{
    return arena_array(&g->r.arena, (size_t)n + 1, sizeof(struct edge));
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

/* A node of the result that stands for one that is not cut, under its name. */
static int is_now(struct grid *g, const struct node *node, struct edge edge, const char *what)
{
    if (g->err->code)
        return g->err->code;
    rewrite_stand_in(&g->r, node, edge.node);
    rewrite_note(&g->r, node->name, what);
    return graph_rename(g->r.to, graph_node(g->r.to, edge.node), node->name, g->err);
}

/* The sum of what cells have stands for the node. */
static int is_sum(struct grid *g, const struct node *node, const struct edge *parts)
{
    struct build *b = grid_builder(g, node, -1);
    return is_now(g, node, build_op(b, "AddN", parts, g->n, NULL, 0), "of all tiles");
}

/* ---- windows ---- */

/* The shape, of which the batch is that of a value of the cell's if it is unknown. */
static struct edge shape_vector_of(struct build *b, enum dtype type, const struct shape *shape,
                                   struct edge like)
{
    int64_t elements[SHAPE_RANK_MAX], none = 0, one = 1;
    int first = shape->dims[0] < 0 ? 1 : 0;
    struct shape length = shape_vector(shape->rank - first);
    struct tensor value = tensor_borrow(type, &length, elements);
    for (int i = first; i < shape->rank; i++)
        tensor_set_int64(&value, i - first, shape->dims[i]);
    struct edge rest = build_const(b, &value);
    if (!first)
        return rest;
    struct attr out = {"out_type", attr_type(type)};
    struct edge batch[] = {build_op(b, "Shape", &like, 1, &out, 1), build_ints(b, &none, 1),
                           build_ints(b, &one, 1)};
    struct edge both[] = {build_op(b, "Slice", batch, 3, NULL, 0), rest};
    return cut_concat(b, 0, both, 2);
}

static struct edge sizes_of(struct grid *g, const struct node *node, int cell, struct area area,
                            const int axis[2], struct edge like)
{
    struct shape shape = node->outputs[0].shape;
    shape.dims[axis[0]] = area.to[0] - area.from[0];
    shape.dims[axis[1]] = area.to[1] - area.from[1];
    return shape_vector_of(grid_builder(g, node, cell), INT32, &shape, like);
}

static struct edge window_input_of(struct grid *g, const struct node *node, int i, int cell,
                                   const struct grid_windows *w)
{
    enum op_lie lie = node->op->def->tiles.inputs[i];
    const struct partition *in = &w->lying[LIES_IN], *out = &w->lying[LIES_OUT];
    struct edge like = EDGE_NONE;
    switch (lie) {
    case LIES_IN:
        return grid_take(g, node->inputs[i], in, grid_region(w, cell).area, cell);
    case LIES_OUT:
    case LIES_FILTERS:
        return grid_take(g, node->inputs[i], &w->lying[lie], cut_area(out, cell), cell);
    case LIES_SIZES:
        /* Where the shape of images is to be given, the windows' outputs have their batch. */
        for (int k = 0; k < node->n_inputs && !edge_exists(like); k++)
            if (node->op->def->tiles.inputs[k] == LIES_OUT)
                like = grid_take(g, node->inputs[k], out, cut_area(out, cell), cell);
        return sizes_of(g, node, cell, grid_region(w, cell).area, in->axis, like);
    case LIES_FILTER_SIZES:
        return sizes_of(g, node, cell, cut_area(out, cell), (int[]){0, 1}, like);
    case LIES_WHOLE:
        break;
    }
    return grid_local(g, node->inputs[i], cell);
}

static int visit_tiles(struct grid *g, const struct node *node)
{
    struct grid_windows w;
    struct edge *parts = new_edges(g, g->n), *inputs = new_edges(g, node->n_inputs);
    struct area *areas = arena_array(&g->r.arena, (size_t)g->n, sizeof *areas);
    enum op_lie output = node->op->def->tiles.output;
    grid_windows(g, node, &w);
    bool is_padded = op_find_attr(node->op, "explicit_paddings") >= 0;
    for (int k = 0; k < g->n; k++) {
        for (int i = 0; i < node->n_inputs; i++)
            inputs[i] = window_input_of(g, node, i, k, &w);
        /* A tile at the border of the image has the padding that is there. */
        struct grid_region region = grid_region(&w, k);
        int64_t pads[8] = {0}, all = 0;
        for (int d = 0; d < 2; d++) {
            int64_t *pad = pads + 2 * w.lying[LIES_IN].axis[d];
            all += (pad[0] = region.before[d]) + (pad[1] = region.after[d]);
        }
        const struct attr padding[] = {{"padding", attr_string(all ? "EXPLICIT" : "VALID")},
                                       {"explicit_paddings", attr_ints(pads, all ? 8 : 0)}};
        parts[k] = grid_copy(g, node, k, inputs, padding, is_padded ? 2 : 0);
        areas[k] = region.area;
    }
    if (output == LIES_WHOLE)
        return is_sum(g, node, parts);
    if (!stand_in(g, node, parts) && output == LIES_IN)
        grid_scatter(g, node, &w.lying[LIES_IN], areas, parts);
    return g->err->code;
}

/* ---- the others ---- */

static struct edge copy_in_cell(struct grid *g, const struct node *node, int cell)
{
    struct edge *inputs = new_edges(g, node->n_inputs);
    for (int i = 0; i < node->n_inputs; i++)
        inputs[i] = grid_operand(g, node, i, cell);
    return grid_copy(g, node, cell, inputs, NULL, 0);
}

static int visit_alike(struct grid *g, const struct node *node)
{
    struct edge *parts = new_edges(g, g->n);
    for (int k = 0; k < g->n; k++)
        parts[k] = copy_in_cell(g, node, k);
    return stand_in(g, node, parts);
}

/* In a mean each tile counts by its share of the cells. */
static int visit_reduction(struct grid *g, const struct node *node)
{
    struct edge *parts = new_edges(g, g->n);
    const struct partition *in = &g->cut[node->inputs[0].node];
    bool is_cut = g->cut[node->id].is_cut;
    for (int k = 0; k < g->n; k++) {
        parts[k] = copy_in_cell(g, node, k);
        if (is_cut || node->op->def->reduction != REDUCTION_MEAN)
            continue;
        struct area area = cut_area(in, k);
        double share = (double)((area.to[0] - area.from[0]) * (area.to[1] - area.from[1])) /
                       (double)(in->size[0] * in->size[1]);
        struct build *b = grid_builder(g, node, k);
        parts[k] = build_binary(b, "Mul", parts[k], build_scalar_like(b, parts[k], share));
    }
    return is_cut ? stand_in(g, node, parts) : is_sum(g, node, parts);
}

/* Slots are with their variables: names are known before the first of them is made. */
static void name_parts(struct grid *g)
{
    graph_each(node, g->from) {
        if (g->role[node->id] != GRID_VARIABLE)
            continue;
        g->names[node->id] = arena_array(&g->r.arena, (size_t)g->n, sizeof **g->names);
        for (int k = 0; k < g->n; k++)
            g->names[node->id][k] = rewrite_part_name(&g->r, node->name, k);
    }
}

static int visit_variable(struct grid *g, const struct node *node)
{
    struct edge *parts = new_edges(g, g->n);
    for (int k = 0; k < g->n; k++)
        parts[k] =
            cut_variable(&g->r, node, &g->cut[node->id], k, g->names[node->id][k], g->devices[k]);
    return stand_in(g, node, parts);
}

static int visit_ask(struct grid *g, const struct node *node)
{
    struct edge *parts = new_edges(g, g->n);
    for (int k = 0; k < g->n; k++)
        parts[k] = copy_in_cell(g, node, k);
    struct build *b = grid_builder(g, node, -1);
    b->device = g->devices[0];
    return is_now(g, node, cut_ask(b, parts, g->n), "asks each part");
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
        return is_now(g, node,
                      shape_vector_of(grid_builder(g, node, 0), node->outputs[0].type,
                                      grid_shape(g, in), g->parts[in.node][0]),
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
    graph_set_device(g->r.to, rewrite_copy(&g->r, node), device_once(g, node));
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
    g->devices = arena_array(&g->r.arena, (size_t)g->n, sizeof *g->devices);
    g->role = arena_alloc(&g->r.arena, n);
    g->stays_whole = arena_alloc(&g->r.arena, n);
    g->cut = arena_array(&g->r.arena, n, sizeof *g->cut);
    g->parts = arena_array(&g->r.arena, n, sizeof *g->parts);
    g->names = arena_array(&g->r.arena, n, sizeof *g->names);
    g->prefix = graph_free_prefix(&g->r.to->arena, g->from, "tile");
    for (int k = 0; k < g->n; k++) {
        /* The pattern with the cell's number for its "*". */
        struct device_name name;
        struct error why = ERROR_INIT;
        const char *text =
            strchr(pattern, '*') ? device_pattern_text(&g->r.arena, pattern, k) : NULL;
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
    int code = rewrite_find_frames(&g->r);
    bool found = false;
    g->r.rules = (struct copy_rules){g->from, g->r.to, leader_of_cell, grid_keeps, g};
    if (!code)
        code = open_grid(g);
    if (!code)
        grid_find(g);
    if (!code)
        for (size_t i = 0; i < g->from->nodes.n; i++)
            found |= g->role[i] == GRID_TILES;
    if (!code && !found)
        code = error_set(g->err, ERR_DATA,
                         "no op with windows has images of known size that %d x %d tiles can be "
                         "cut of",
                         g->options->rows, g->options->columns);
    name_parts(g);
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
    return rewrite_finish(&g->r, code, to);
}

int grid_graph(const struct graph *from, const struct grid_options *options, struct graph **to,
               struct error *err)
{
    const struct pass_options pass = {.note = options->note, .context = options->context};
    struct grid g = {
        .from = from, .options = options, .n = options->rows * options->columns, .err = err};
    *to = NULL;
    return rewrite_open(&g.r, from, &pass, err) ? err->code : build(&g, to);
}
