/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that cut images into tiles share. Private to libcommon/pass.
 */
#ifndef TF_PASS_GRID_PRIVATE_H
#define TF_PASS_GRID_PRIVATE_H

#include "pass/cut.h"
#include "pass/grid/grid.h"

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
    struct partition cut;
    struct area area;
};

struct grid {
    const struct graph *from;
    const struct grid_options *options;
    struct rewrite r;
    int n;
    const char **devices;        /* by cell */
    const char *prefix;          /* of the names of what is new: prefix_CELL/NAME */
    char *role;                  /* by node: enum grid_role */
    char *stays_whole;           /* by node: a variable that some node needs whole */
    struct partition *cut;       /* by node: of its output, in the parts... */
    struct edge **parts;         /* ... that are here, by cell */
    const char ***names;         /* by variable that is cut, and cell */
    VEC(struct grid_part) known; /* regions and slices that were made */
    struct build b;
    struct error *err;
};

static inline const struct shape *grid_shape(const struct grid *g, struct edge edge)
{
    return &graph_node(g->from, edge.node)->outputs[edge.slot].shape;
}

/* The cut of a value of the source; is_cut is false if it is whole. */
static inline struct partition grid_cut_of(const struct grid *g, struct edge edge)
{
    return edge.slot == 0 && edge_exists(edge) ? g->cut[edge.node] : (struct partition){0};
}

/* grid_find.c: roles and cuts. */
void grid_find(struct grid *g);

/* The windows of a node with role GRID_TILES, and by enum op_lie how what lies in some way to them
 * is cut; false if that is not to be known, or some tile would have nothing. */
struct grid_windows {
    struct op_window window;
    struct partition lying[LIES_FILTERS + 1];
};
bool grid_windows(const struct grid *g, const struct node *node, struct grid_windows *windows);
/* The region that a cell's windows look at, and how much of them is before and after the image. */
struct grid_region {
    struct area area;
    int64_t before[2], after[2];
};
struct grid_region grid_region(const struct grid_windows *windows, int cell);

/* grid_part.c: values of the source as nodes of the result. EDGE_NONE once something has failed.
 * The whole, put together if need be; for one cell, as it is, a constant beside it; the area of
 * what is to be cut so, beside the cell. */
struct edge grid_whole(struct grid *g, struct edge edge);
struct edge grid_local(struct grid *g, struct edge edge, int cell);
struct edge grid_take(struct grid *g, struct edge edge, const struct partition *cut,
                      struct area area, int cell);
/* What the cells have of each other's tiles is added in their order, and becomes
 * the node's tiles: parts[k] has areas[k]. */
void grid_scatter(struct grid *g, const struct node *node, const struct partition *cut,
                  const struct area *areas, const struct edge *parts);

/* grid.c: nodes of the result, below a node's name: of a cell, or, -1, of what is there once. */
struct build *grid_builder(struct grid *g, const struct node *node, int cell);
/* The node again for a cell, with these inputs; `more` replaces attributes. */
struct edge grid_copy(struct grid *g, const struct node *node, int cell, const struct edge *inputs,
                      const struct attr *more, int n_more);

/* Input i of a node for a cell: of one that goes element by element what of it there is in its
 * tile, of another one its part. */
struct edge grid_operand(struct grid *g, const struct node *node, int i, int cell);

#endif
