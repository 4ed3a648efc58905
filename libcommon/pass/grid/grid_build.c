/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "graph/group.h"
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

const char *grid_name(struct grid *g, const char *name, int cell)
{
    return arena_printf(&g->r.to->arena, "%s_%d/%s", g->prefix, cell, name);
}

struct build *grid_builder(struct grid *g, const struct node *node, int cell, const char *device)
{
    const char *scope = cell < 0 ? arena_printf(&g->arena, "%s/%s", g->prefix, node->name)
                                 : grid_name(g, node->name, cell);
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
const char *grid_leader(void *context, const struct node *leader, int cell)
{
    const struct grid *g = context;
    if (g->names[leader->id])
        return g->names[leader->id][cell < 0 ? 0 : cell];
    return g->cut[leader->id].is_cut || cell > 0 ? NULL : leader->name;
}

/* A gradient is handed over for the part of the variable. */
bool grid_attr(void *context, const struct node *node, int cell, struct attr *attr)
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
                                      .name = names ? names[cell] : grid_name(g, node->name, cell),
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

int grid_stand_in(struct grid *g, const struct node *node, struct edge *parts)
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

/* A cell of it, all around which there is padding: nothing of a value is kept but its type and its
 * other axes. */
struct edge grid_zeros(struct build *b, struct edge like, struct grid_cut cut,
                       struct grid_area area)
{
    int32_t pads[2 * SHAPE_RANK_MAX] = {0};
    int rank = build_shape(b, like)->rank;
    struct shape shape = shape_matrix(rank, 2);
    struct tensor paddings = tensor_borrow(INT32, &shape, pads);
    struct edge cell = grid_slice(b, like, cut, (struct grid_area){0, 1, 0, 1});
    pads[2 * cut.y + 1] = (int32_t)(area.y1 - area.y0 - 1);
    pads[2 * cut.x + 1] = (int32_t)(area.x1 - area.x0 - 1);
    cell = build_unary(b, "ZerosLike", cell);
    return build_binary(b, "Pad", cell, build_const(b, &paddings));
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
