/* SPDX-License-Identifier: Apache-2.0
 *
 * What a tile of the windows' outputs needs of the image.
 */
#include <string.h>

#include "pass/grid/grid_private.h"

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
