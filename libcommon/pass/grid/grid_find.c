/* SPDX-License-Identifier: Apache-2.0
 *
 * What is cut, and how. Cutting starts at ops with windows, and what goes element by element goes
 * on with it; a variable is cut if what is cut takes its part of it.
 */
#include <string.h>

#include "graph/access_nodes.h"
#include "graph/infer.h"
#include "graph/worker_attr.h"
#include "pass/grid/grid_private.h"
#include "pass/part/part.h"

/* ---- what a tile of the windows' outputs needs of the image ---- */

static int64_t at_least(int64_t value, int64_t least)
{
    return value > least ? value : least;
}

static int64_t at_most(int64_t value, int64_t most)
{
    return value < most ? value : most;
}

struct grid_area grid_tile(const struct grid *g, struct grid_cut cut, int cell)
{
    int64_t row = cell / g->columns, column = cell % g->columns;
    return (struct grid_area){row * cut.height / g->rows, (row + 1) * cut.height / g->rows,
                              column * cut.width / g->columns,
                              (column + 1) * cut.width / g->columns};
}

struct grid_area grid_meet(struct grid_area a, struct grid_area b)
{
    return (struct grid_area){at_least(a.y0, b.y0), at_most(a.y1, b.y1), at_least(a.x0, b.x0),
                              at_most(a.x1, b.x1)};
}

/* The shape of a tensor that lies so; NULL: none of the node's does. */
static const struct shape *shape_lying(const struct grid *g, const struct node *node,
                                       enum op_lie lie)
{
    const struct op_tiles *tiles = &node->op->def->tiles;
    if (tiles->output == lie)
        return &node->outputs[0].shape;
    for (int i = 0; i < node->n_inputs; i++)
        if (tiles->inputs[i] == lie)
            return &grid_output(g, node->inputs[i])->shape;
    return NULL;
}

/* False: the sizes are unknown, or some tile would be empty. */
static bool cut_of(const struct grid *g, const struct shape *shape, const struct op_window *window,
                   struct grid_cut *cut)
{
    int y = window->y.axis, x = window->x.axis;
    if (shape->rank <= y || shape->rank <= x)
        return false;
    *cut = (struct grid_cut){true, y, x, shape->dims[y], shape->dims[x]};
    return cut->height >= g->rows && cut->width >= g->columns;
}

struct grid_region grid_region(const struct grid *g, const struct grid_windows *w, int cell)
{
    struct grid_area out = grid_tile(g, w->out, cell);
    const struct op_window_axis *y = &w->window.y, *x = &w->window.x;
    int64_t y0 = out.y0 * y->stride - y->before, x0 = out.x0 * x->stride - x->before;
    int64_t y1 = (out.y1 - 1) * y->stride - y->before + y->size;
    int64_t x1 = (out.x1 - 1) * x->stride - x->before + x->size;
    const struct grid_area image = {0, w->in.height, 0, w->in.width};
    return (struct grid_region){grid_meet((struct grid_area){y0, y1, x0, x1}, image),
                                at_least(-y0, 0), at_least(y1 - w->in.height, 0), at_least(-x0, 0),
                                at_least(x1 - w->in.width, 0)};
}

bool grid_windows(const struct grid *g, const struct node *node, struct grid_windows *w)
{
    const struct op_def *def = node->op->def;
    bool (*window)(const struct graph *, const struct node *, struct op_window *) =
        def->tiles.window ? def->tiles.window : def->window;
    memset(w, 0, sizeof *w);
    if (!def->tiles.is_known || node->n_outputs != 1 || !window(g->from, node, &w->window))
        return false;
    const struct shape *out = shape_lying(g, node, LIES_OUT), *in = shape_lying(g, node, LIES_IN);
    if (!cut_of(g, out, &w->window, &w->out) || !cut_of(g, in ? in : out, &w->window, &w->in))
        return false;
    w->filters = (struct grid_cut){true, 0, 1, w->out.height, w->out.width};
    /* Each cell's windows must see some of the image, and each tile of it must be seen. */
    for (int k = 0; k < g->n; k++) {
        struct grid_area tile = grid_tile(g, w->in, k);
        bool seen = false;
        if (grid_is_empty(grid_region(g, w, k).area))
            return false;
        for (int j = 0; j < g->n; j++)
            seen |= !grid_is_empty(grid_meet(grid_region(g, w, j).area, tile));
        if (!seen)
            return false;
    }
    return true;
}

struct grid_cut grid_lies(const struct grid_windows *w, enum op_lie lie)
{
    return lie == LIES_IN        ? w->in
           : lie == LIES_OUT     ? w->out
           : lie == LIES_FILTERS ? w->filters
                                 : (struct grid_cut){0};
}

/* ---- what is cut ---- */

struct grid_cut grid_cut_of(const struct grid *g, struct edge edge)
{
    return edge.slot == 0 && edge_exists(edge) ? g->cut[edge.node] : (struct grid_cut){0};
}

/* ---- variables ---- */

/* The variable whose value the edge is, if it is to be cut so, is cut from now on. */
static bool want(struct grid *g, struct edge edge, struct grid_cut cut)
{
    const struct node *node = graph_node(g->from, edge.node);
    while (node_has(node, OP_PASSES) && node->n_inputs == 1)
        node = graph_node(g->from, node->inputs[0].node);
    if (g->cut[node->id].is_cut)
        return false;
    const struct shape *shape = &node->outputs[0].shape;
    const struct attr_value *local = node_attr(node, WORKER_LOCAL);
    if (!node_is(node, "Variable") || g->stays_whole[node->id] || !shape_is_known(shape) ||
        *node_string(node, "shared_name") || (local && local->b) || cut.y < 0 || cut.x < 0 ||
        shape->dims[cut.y] != cut.height || shape->dims[cut.x] != cut.width)
        return false;
    g->cut[node->id] = cut;
    g->role[node->id] = GRID_VARIABLE;
    return true;
}

/* ---- element by element ---- */

/* The axes of input i that are aligned with those of the output; -1: it has none, or one cell. */
static struct grid_cut aligned(const struct grid *g, const struct node *node, int i,
                               struct grid_cut cut)
{
    const struct shape *shape = &grid_output(g, node->inputs[i])->shape;
    int shift = node->outputs[0].shape.rank - shape->rank;
    cut.y -= shift;
    cut.x -= shift;
    if (cut.y < 0 || shape->dims[cut.y] != cut.height)
        cut.y = -1;
    if (cut.x < 0 || shape->dims[cut.x] != cut.width)
        cut.x = -1;
    cut.is_cut = cut.y >= 0 || cut.x >= 0;
    return cut;
}

static bool find_alike(struct grid *g, const struct node *node, struct grid_cut *cut)
{
    if (node_rows(node) != ROWS_ALIKE || node->n_outputs != 1 || node_has(node, OP_STATEFUL) ||
        node->outputs[0].is_ref || node->outputs[0].shape.rank < 0)
        return false;
    const struct shape *out = &node->outputs[0].shape;
    *cut = (struct grid_cut){0};
    for (int i = 0; i < node->n_inputs && !cut->is_cut; i++) {
        struct grid_cut c = grid_cut_of(g, node->inputs[i]);
        int shift = out->rank - grid_output(g, node->inputs[i])->shape.rank;
        if (!c.is_cut || out->dims[c.y + shift] != c.height || out->dims[c.x + shift] != c.width)
            continue;
        *cut = c;
        cut->y += shift;
        cut->x += shift;
    }
    for (int i = 0; i < node->n_inputs && cut->is_cut; i++) {
        const struct shape *shape = &grid_output(g, node->inputs[i])->shape;
        int shift = node->outputs[0].shape.rank - shape->rank;
        cut->is_cut = shape->rank >= 0 && (cut->y < shift || shape->dims[cut->y - shift] >= 0) &&
                      (cut->x < shift || shape->dims[cut->x - shift] >= 0);
    }
    return cut->is_cut;
}

struct edge grid_operand(struct grid *g, const struct node *node, int i, int cell)
{
    struct grid_cut cut = aligned(g, node, i, g->cut[node->id]);
    return grid_take(g, node->inputs[i], cut, grid_tile(g, g->cut[node->id], cell), cell);
}

/* ---- the other roles ---- */

/* Both axes or none: of one, what is left would be in stripes. */
static bool find_reduction(struct grid *g, const struct node *node, struct grid_cut *cut)
{
    enum op_reduction kind = node->op->def->reduction;
    struct grid_cut in =
        node->n_inputs == 2 ? grid_cut_of(g, node->inputs[0]) : (struct grid_cut){0};
    unsigned axes;
    if (!kind || !in.is_cut ||
        !graph_constant_axes(g->from, node->inputs[1], grid_output(g, node->inputs[0])->shape.rank,
                             &axes))
        return false;
    bool y = axes & 1U << in.y, x = axes & 1U << in.x;
    *cut = (struct grid_cut){0};
    if (y || x)
        return y && x &&
               (kind == REDUCTION_SUM ||
                (kind == REDUCTION_MEAN && dtype_is_floating(node->outputs[0].type)));
    *cut = in;
    if (!node_bool(node, "keep_dims")) {
        cut->y = axis_without(axes, in.y);
        cut->x = axis_without(axes, in.x);
    }
    return true;
}

/* Returns whether its value is the shape of what is cut, of which the batch at most is unknown. */
static bool is_shape(const struct grid *g, const struct node *node)
{
    struct shape value;
    if (!node_has(node, OP_SHAPE_ONLY) || !node->op->def->value || node->n_inputs != 1 ||
        !grid_cut_of(g, node->inputs[0]).is_cut || node->outputs[0].shape.rank != 1 ||
        !graph_constant_shape(g->from, (struct edge){node->id, 0}, &value))
        return false;
    const struct shape *in = &grid_output(g, node->inputs[0])->shape;
    for (int i = 0; i < in->rank; i++)
        if (value.rank != in->rank || value.dims[i] != in->dims[i] || (i && value.dims[i] < 0))
            return false;
    return in->rank > 0;
}

static bool find_tiles(struct grid *g, const struct node *node, struct grid_cut *cut, bool *changed)
{
    struct grid_windows windows;
    if (!grid_windows(g, node, &windows))
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (node->op->def->tiles.inputs[i] == LIES_FILTERS)
            *changed |= want(g, node->inputs[i], windows.filters);
    *cut = grid_lies(&windows, node->op->def->tiles.output);
    return true;
}

/* ---- who has variables themselves ---- */

/* All variables of an update are cut alike, or none is. */
static bool find_writer(struct grid *g, const struct node *node, bool *changed)
{
    struct edge first = EDGE_NONE;
    for (int i = 0; i < node->n_inputs && !edge_exists(first); i++) {
        struct edge edge = node->inputs[i];
        first = node_takes_ref(node, i) && g->cut[edge.node].is_cut ? edge : EDGE_NONE;
    }
    if (!edge_exists(first))
        return false;
    struct grid_cut cut = g->cut[first.node];
    bool can = node_rows(node) == ROWS_UPDATE || node_rows(node) == ROWS_ASK;
    for (int i = 0; i < node->n_inputs; i++) {
        if (node_takes_ref(node, i))
            *changed |= want(g, node->inputs[i], cut);
        can &= node_takes_ref(node, i) ? grid_cut_equal(g->cut[node->inputs[i].node], cut)
                                       : grid_output(g, node->inputs[i])->shape.rank >= 0;
    }
    for (int i = 0; i < node->n_inputs && !can; i++)
        if (node_takes_ref(node, i)) {
            *changed |= !g->stays_whole[node->inputs[i].node];
            g->stays_whole[node->inputs[i].node] = true;
        }
    if (!can)
        return false;
    g->role[node->id] = node_rows(node) == ROWS_ASK ? GRID_ASK : GRID_UPDATE;
    g->cut[node->id] = g->role[node->id] == GRID_ASK ? (struct grid_cut){0} : cut;
    return true;
}

/* ---- the search ---- */

static bool cut_node(struct grid *g, const struct node *node)
{
    bool changed = false;
    struct grid_cut cut = {0};
    if (g->frames->frame[node->id] != FRAME_ROOT || g->role[node->id] == GRID_VARIABLE ||
        find_writer(g, node, &changed))
        return changed;
    enum grid_role role = find_tiles(g, node, &cut, &changed) ? GRID_TILES
                          : find_alike(g, node, &cut)         ? GRID_ALIKE
                          : find_reduction(g, node, &cut)     ? GRID_REDUCE
                          : is_shape(g, node)                 ? GRID_SHAPE
                                                              : GRID_ONCE;
    g->role[node->id] = (char)role;
    g->cut[node->id] = cut;
    for (int i = 0; role == GRID_ALIKE && i < node->n_inputs; i++) {
        struct grid_cut in = aligned(g, node, i, cut);
        if (in.is_cut && !grid_cut_of(g, node->inputs[i]).is_cut)
            changed |= want(g, node->inputs[i], in);
    }
    return changed;
}

/* Visits until nothing changes. When a variable has to be whole, all is found anew. */
int grid_find(struct grid *g)
{
    size_t n = g->from->nodes.n, n_whole = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < n; i++)
            changed |= cut_node(g, graph_node(g->from, g->r.order[i]));
        size_t whole = 0;
        for (size_t i = 0; i < n; i++)
            whole += g->stays_whole[i] != 0;
        if (whole != n_whole) {
            memset(g->role, 0, n);
            memset(g->cut, 0, n * sizeof *g->cut);
            n_whole = whole;
            changed = true;
        }
    }
    return 0;
}
