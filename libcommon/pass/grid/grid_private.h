/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that cut images into tiles share. Private to libcommon/pass.
 */
#ifndef TF_PASS_GRID_PRIVATE_H
#define TF_PASS_GRID_PRIVATE_H

#include "graph/build.h"
#include "graph/frames.h"
#include "pass/grid/grid.h"
#include "pass/rewrite.h"

/* Two axes of a tensor that are cut, and their sizes. */
struct grid_cut {
    bool is_cut;
    int y, x;
    int64_t height, width;
};

/* Rows [y0, y1) and columns [x0, x1). */
struct grid_area {
    int64_t y0, y1, x0, x1;
};

enum grid_role {
    GRID_ONCE,
    GRID_TILES,  /* has windows, or is a gradient of what has */
    GRID_ALIKE,  /* goes element by element */
    GRID_REDUCE, /* reduces axes, of which one is cut or none */
    GRID_SHAPE,  /* is the shape of what is cut */
    GRID_VARIABLE,
    GRID_UPDATE, /* changes such variables element by element */
    GRID_ASK,    /* asks about one */
};

/* A part of an output of the source that is there already, for a cell. */
struct grid_part {
    struct edge of, edge;
    int cell;
    struct grid_cut cut;
    struct grid_area area;
};

struct grid {
    const struct graph *from;
    const struct grid_options *options;
    struct rewrite r;
    struct copy_rules rules;
    struct frames *frames;
    int rows, columns, n;
    const char **devices;        /* by cell */
    const char *prefix;          /* of the names of what is new: prefix_CELL/NAME */
    char *role;                  /* by node: enum grid_role */
    char *stays_whole;           /* by node: a variable that some node needs whole */
    struct grid_cut *cut;        /* by node: of its output, in the parts... */
    struct edge **parts;         /* ... that are here, by cell */
    const char ***names;         /* by variable that is cut, and cell */
    VEC(struct grid_part) known; /* regions and slices that were made */
    struct build b;
    struct arena arena;
    struct error *err;
};

static inline const struct node_output *grid_output(const struct grid *g, struct edge edge)
{
    return &graph_node(g->from, edge.node)->outputs[edge.slot];
}

/* The cut of a value of the source; is_cut is false if it is whole. */
struct grid_cut grid_cut_of(const struct grid *g, struct edge edge);
static inline bool grid_cut_equal(struct grid_cut a, struct grid_cut b)
{
    return a.is_cut == b.is_cut && a.y == b.y && a.x == b.x && a.height == b.height &&
           a.width == b.width;
}

struct grid_area grid_tile(const struct grid *g, struct grid_cut cut, int cell);
struct grid_area grid_meet(struct grid_area a, struct grid_area b);
static inline bool grid_is_empty(struct grid_area a)
{
    return a.y0 >= a.y1 || a.x0 >= a.x1;
}
static inline bool grid_area_equal(struct grid_area a, struct grid_area b)
{
    return a.y0 == b.y0 && a.y1 == b.y1 && a.x0 == b.x0 && a.x1 == b.x1;
}

/* grid_find.c: roles and cuts. */
int grid_find(struct grid *g);

/* The windows of a node with role GRID_TILES, and how what lies in some way to them
 * is cut; false if that is not to be known, or some tile would have nothing. */
struct grid_windows {
    struct op_window window;
    struct grid_cut in, out, filters;
};
bool grid_windows(const struct grid *g, const struct node *node, struct grid_windows *windows);
struct grid_cut grid_lies(const struct grid_windows *windows, enum op_lie lie);
/* The region that a cell's windows look at, and how much of them is before and after the image. */
struct grid_region {
    struct grid_area area;
    int64_t before_y, after_y, before_x, after_x;
};
struct grid_region grid_region(const struct grid *g, const struct grid_windows *windows, int cell);

/* grid_part.c: values of the source as nodes of the result. EDGE_NONE once something has failed.
 * The whole, put together if need be; for one cell, as it is, a constant beside it; the area of
 * what is to be cut so, beside the cell. */
struct edge grid_whole(struct grid *g, struct edge edge);
struct edge grid_local(struct grid *g, struct edge edge, int cell);
struct edge grid_take(struct grid *g, struct edge edge, struct grid_cut cut, struct grid_area area,
                      int cell);
/* What the cells have of each other's tiles is added in their order, and becomes
 * the node's tiles: parts[k] has areas[k]. */
void grid_scatter(struct grid *g, const struct node *node, struct grid_cut cut,
                  const struct grid_area *areas, const struct edge *parts);

/* grid.c: nodes of the result, below a node's name, on a device. */
struct build *grid_builder(struct grid *g, const struct node *node, int cell, const char *device);
const char *grid_device(const struct grid *g, const struct node *node); /* of what is there once */
/* The node again for a cell, with these inputs; `more` replaces attributes. */
struct edge grid_copy(struct grid *g, const struct node *node, int cell, const struct edge *inputs,
                      const struct attr *more, int n_more);
struct edge grid_slice(struct build *b, struct edge from, struct grid_cut cut,
                       struct grid_area area);
struct edge grid_concat(struct build *b, int axis, const struct edge *parts, int n);

/* Input i of a node that goes element by element, for a cell: what of it there is in its tile. */
struct edge grid_operand(struct grid *g, const struct node *node, int i, int cell);

#endif
