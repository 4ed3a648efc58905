/* SPDX-License-Identifier: Apache-2.0
 *
 * What is cut, and how. Cutting starts at ops with windows, and what goes element by element goes
 * on with it; a variable is cut if what is cut takes its part of it.
 */
#include <string.h>

#include "graph/access_nodes.h"
#include "graph/infer.h"
#include "pass/grid/grid_private.h"

/* ---- what a tile of the windows' outputs needs of the image ---- */

static int64_t at_least(int64_t value, int64_t least)
{
    return value > least ? value : least;
}

/* How what has that shape is cut along those axes; false: their sizes are unknown, or some tile
 * would be empty. */
static bool cut_along(const struct grid *g, const struct shape *shape, int y, int x,
                      struct partition *cut)
{
    const struct grid_options *o = g->options;
    if (shape->rank <= y || shape->rank <= x)
        return false;
    *cut = (struct partition){
        true, true, {y, x}, {o->rows, o->columns}, {shape->dims[y], shape->dims[x]}};
    return cut->size[0] >= o->rows && cut->size[1] >= o->columns;
}

struct grid_region grid_region(const struct grid_windows *w, int cell)
{
    const struct op_window_axis *axes[] = {&w->window.y, &w->window.x};
    const struct partition *image = &w->lying[LIES_IN];
    struct area out = cut_area(&w->lying[LIES_OUT], cell);
    struct grid_region region;
    for (int d = 0; d < 2; d++) {
        int64_t from = out.from[d] * axes[d]->stride - axes[d]->before;
        int64_t to = (out.to[d] - 1) * axes[d]->stride - axes[d]->before + axes[d]->size;
        region.before[d] = at_least(-from, 0);
        region.after[d] = at_least(to - image->size[d], 0);
        region.area.from[d] = from + region.before[d];
        region.area.to[d] = to - region.after[d];
    }
    return region;
}

bool grid_windows(const struct grid *g, const struct node *node, struct grid_windows *w)
{
    memset(w, 0, sizeof *w);
    if (!graph_window(g->from, node, &w->window))
        return false;
    int y = w->window.y.axis, x = w->window.x.axis;
    const struct shape *out = graph_shape_lying(g->from, node, LIES_OUT);
    const struct shape *in = graph_shape_lying(g->from, node, LIES_IN);
    if (!cut_along(g, out, y, x, &w->lying[LIES_OUT]) ||
        !cut_along(g, in ? in : out, y, x, &w->lying[LIES_IN]))
        return false;
    w->lying[LIES_FILTERS] = w->lying[LIES_OUT];
    w->lying[LIES_FILTERS].axis[0] = 0;
    w->lying[LIES_FILTERS].axis[1] = 1;
    /* Each cell's windows must see some of the image, and each tile of it must be seen. */
    for (int k = 0; k < g->n; k++) {
        struct area tile = cut_area(&w->lying[LIES_IN], k);
        bool seen = false;
        if (area_is_empty(grid_region(w, k).area))
            return false;
        for (int j = 0; j < g->n; j++)
            seen |= !area_is_empty(area_meet(grid_region(w, j).area, tile));
        if (!seen)
            return false;
    }
    return true;
}

/* ---- variables ---- */

/* The variable whose value the edge is, if it is to be cut so, is cut from now on. */
static bool want(struct grid *g, struct edge edge, const struct partition *cut)
{
    const struct node *node = graph_node(g->from, edge.node);
    while (node_has(node, OP_PASSES) && node->n_inputs == 1)
        node = graph_node(g->from, node->inputs[0].node);
    if (g->cut[node->id].is_cut || !cut_is_possible(node) || g->stays_whole[node->id] ||
        *node_string(node, "shared_name"))
        return false;
    for (int d = 0; d < 2; d++)
        if (cut->axis[d] < 0 || node->outputs[0].shape.dims[cut->axis[d]] != cut->size[d])
            return false;
    g->cut[node->id] = *cut;
    g->role[node->id] = GRID_VARIABLE;
    return true;
}

/* ---- element by element ---- */

/* The axes of input i that are aligned with those of the output; -1: it has none, or one cell. */
static struct partition aligned(const struct grid *g, const struct node *node, int i,
                                struct partition cut)
{
    const struct shape *shape = grid_shape(g, node->inputs[i]);
    for (int d = 0; d < 2; d++) {
        cut.axis[d] -= node->outputs[0].shape.rank - shape->rank;
        if (cut.axis[d] < 0 || shape->dims[cut.axis[d]] != cut.size[d])
            cut.axis[d] = -1;
    }
    cut.is_cut = cut.axis[0] >= 0 || cut.axis[1] >= 0;
    return cut;
}

static bool find_alike(struct grid *g, const struct node *node, struct partition *cut)
{
    const struct shape *out = node->n_outputs == 1 ? &node->outputs[0].shape : NULL;
    if (!out || node_rows(node) != ROWS_ALIKE || node_has(node, OP_STATEFUL) ||
        node->outputs[0].is_ref || out->rank < 0)
        return false;
    *cut = (struct partition){0};
    for (int i = 0; i < node->n_inputs && !cut->is_cut; i++) {
        struct partition c = grid_cut_of(g, node->inputs[i]);
        for (int d = 0; d < 2 && c.is_cut; d++) {
            c.axis[d] += out->rank - grid_shape(g, node->inputs[i])->rank;
            c.is_cut = out->dims[c.axis[d]] == c.size[d];
        }
        *cut = c;
    }
    for (int i = 0; i < node->n_inputs && cut->is_cut; i++) {
        const struct shape *shape = grid_shape(g, node->inputs[i]);
        int shift = out->rank - shape->rank;
        cut->is_cut = shape->rank >= 0;
        for (int d = 0; d < 2; d++)
            cut->is_cut &= cut->axis[d] < shift || shape->dims[cut->axis[d] - shift] >= 0;
    }
    return cut->is_cut;
}

struct edge grid_operand(struct grid *g, const struct node *node, int i, int cell)
{
    bool is_alike = g->role[node->id] == GRID_ALIKE || g->role[node->id] == GRID_UPDATE;
    const struct partition is = is_alike ? g->cut[node->id] : grid_cut_of(g, node->inputs[i]);
    const struct partition cut = is_alike ? aligned(g, node, i, is) : is;
    return cut.is_cut ? grid_take(g, node->inputs[i], &cut, cut_area(&is, cell), cell)
                      : grid_local(g, node->inputs[i], cell);
}

/* ---- the other roles ---- */

/* Both axes or none: of one, what is left would be in stripes. */
static bool find_reduction(struct grid *g, const struct node *node, struct partition *cut)
{
    enum op_reduction kind = node->op->def->reduction;
    unsigned axes;
    *cut = node->n_inputs == 2 ? grid_cut_of(g, node->inputs[0]) : (struct partition){0};
    if (!kind || !cut->is_cut ||
        !graph_constant_axes(g->from, node->inputs[1], grid_shape(g, node->inputs[0])->rank, &axes))
        return false;
    bool y = axes & 1U << cut->axis[0], x = axes & 1U << cut->axis[1];
    if (y || x) {
        *cut = (struct partition){0};
        return y && x &&
               (kind == REDUCTION_SUM ||
                (kind == REDUCTION_MEAN && dtype_is_floating(node->outputs[0].type)));
    }
    for (int d = 0; d < 2 && !node_bool(node, "keep_dims"); d++)
        cut->axis[d] = axis_without(axes, cut->axis[d]);
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
    const struct shape *in = grid_shape(g, node->inputs[0]);
    for (int i = 1; i < in->rank; i++)
        if (value.dims[i] < 0)
            return false;
    return in->rank > 0 && shape_equal(&value, in);
}

static bool find_tiles(struct grid *g, const struct node *node, struct partition *cut,
                       bool *changed)
{
    struct grid_windows windows;
    const struct op_tiles *tiles = &node->op->def->tiles;
    if (!grid_windows(g, node, &windows))
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (tiles->inputs[i] == LIES_FILTERS)
            *changed |= want(g, node->inputs[i], &windows.lying[LIES_FILTERS]);
    *cut = windows.lying[tiles->output];
    return true;
}

/* ---- who has variables themselves ---- */

/* All variables of an update are cut alike, or none is. */
static bool find_writer(struct grid *g, const struct node *node, bool *changed)
{
    enum op_rows rows = node_rows(node);
    bool can = rows == ROWS_UPDATE || rows == ROWS_ASK;
    struct partition cut = {0};
    for (int i = 0; i < node->n_inputs && !cut.is_cut; i++)
        if (node_takes_ref(node, i))
            cut = g->cut[node->inputs[i].node];
    if (!cut.is_cut)
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        bool is_variable = node_takes_ref(node, i);
        if (is_variable)
            *changed |= want(g, node->inputs[i], &cut);
        can &= is_variable ? cut_equal(&g->cut[node->inputs[i].node], &cut)
                           : grid_shape(g, node->inputs[i])->rank >= 0;
    }
    for (int i = 0; i < node->n_inputs && !can; i++)
        if (node_takes_ref(node, i)) {
            *changed |= !g->stays_whole[node->inputs[i].node];
            g->stays_whole[node->inputs[i].node] = true;
        }
    if (!can)
        return false;
    g->role[node->id] = rows == ROWS_ASK ? GRID_ASK : GRID_UPDATE;
    g->cut[node->id] = rows == ROWS_ASK ? (struct partition){0} : cut;
    return true;
}

/* ---- the search ---- */

static bool cut_node(struct grid *g, const struct node *node)
{
    bool changed = false;
    struct partition cut = {0};
    if (g->r.frames->frame[node->id] != FRAME_ROOT || g->role[node->id] == GRID_VARIABLE ||
        find_writer(g, node, &changed))
        return changed;
    enum grid_role role = find_tiles(g, node, &cut, &changed) ? GRID_TILES
                          : find_alike(g, node, &cut)         ? GRID_ALIKE
                          : find_reduction(g, node, &cut)     ? GRID_REDUCE
                          : is_shape(g, node)                 ? GRID_SHAPE
                                                              : GRID_ONCE;
    if (role == GRID_ONCE || role == GRID_SHAPE)
        cut = (struct partition){0};
    g->role[node->id] = (char)role;
    g->cut[node->id] = cut;
    for (int i = 0; role == GRID_ALIKE && i < node->n_inputs; i++) {
        struct partition in = aligned(g, node, i, cut);
        if (in.is_cut && !grid_cut_of(g, node->inputs[i]).is_cut)
            changed |= want(g, node->inputs[i], &in);
    }
    return changed;
}

/* Visits until nothing changes. When a variable has to be whole, all is found anew. */
void grid_find(struct grid *g)
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
}
