/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions: what a cell has of its own tile and what it gets of others'. Each is made once, however
 * many ops look at it.
 */
#include <string.h>

#include "pass/grid/grid_private.h"

static struct edge known_part(const struct grid *g, const struct grid_part *wanted)
{
    vec_each(p, &g->known) {
        if (p->cell == wanted->cell && edge_equal(p->of, wanted->of) &&
            cut_equal(&p->cut, &wanted->cut) && area_equal(p->area, wanted->area))
            return p->edge;
    }
    return EDGE_NONE;
}

struct edge grid_whole(struct grid *g, struct edge edge)
{
    struct edge there = rewrite_edge(&g->r, edge);
    const struct node *node = graph_node(g->from, edge.node);
    if (edge_exists(there) || g->err->code || !g->parts[edge.node])
        return there;
    there = cut_join(grid_builder(g, node, -1), &g->cut[edge.node], g->parts[edge.node]);
    g->r.edges[g->r.first[edge.node] + edge.slot] = there;
    if (edge_exists(there) && !node->outputs[0].is_ref && !graph_find(g->r.to, node->name))
        graph_rename(g->r.to, graph_node(g->r.to, there.node), node->name, g->err);
    if (g->options->note)
        g->options->note(g->options->context, node->name, "put together");
    return there;
}

/* A constant is wherever it is needed. */
struct edge grid_local(struct grid *g, struct edge edge, int cell)
{
    const struct node *node = graph_node(g->from, edge.node);
    if (!node_is(node, "Const") || node->n_controls)
        return grid_whole(g, edge);
    struct grid_part part = {.of = edge, .cell = cell};
    part.edge = known_part(g, &part);
    if (!edge_exists(part.edge)) {
        part.edge = grid_copy(g, node, cell, NULL, NULL, 0);
        vec_push_in(&g->r.arena, &g->known, part);
    }
    return part.edge;
}

/* The area of a part, beside a cell, below the name of a node. */
static struct edge crop(struct grid *g, const struct node *node, const struct grid_part *part,
                        struct area area, int cell)
{
    if (area_equal(area, part->area) || g->err->code)
        return part->edge;
    return cut_slice(grid_builder(g, node, cell), part->edge, &part->cut,
                     area_within(area, part->area));
}

static struct edge assemble(struct grid *g, const struct grid_part *part)
{
    const struct node *node = graph_node(g->from, part->of.node);
    struct grid_part tile = {.edge = g->parts[node->id][part->cell],
                             .cut = part->cut,
                             .area = cut_area(&part->cut, part->cell)};
    if (area_equal(area_meet(tile.area, part->area), part->area))
        return crop(g, node, &tile, part->area, part->cell);
    struct edge *pieces = arena_array(&g->r.arena, (size_t)g->n, sizeof *pieces);
    for (int k = 0; k < g->n; k++) {
        struct area area = area_meet(part->area, cut_area(&part->cut, k));
        pieces[k] = area_is_empty(area) ? EDGE_NONE : grid_take(g, part->of, &part->cut, area, k);
    }
    return cut_join(grid_builder(g, node, part->cell), &part->cut, pieces);
}

struct edge grid_take(struct grid *g, struct edge edge, const struct partition *cut,
                      struct area area, int cell)
{
    struct grid_part part = {.of = edge, .cell = cell, .cut = *cut, .area = area};
    struct partition is = grid_cut_of(g, edge);
    if (!cut->is_cut)
        return grid_local(g, edge, cell);
    part.edge = known_part(g, &part);
    if (edge_exists(part.edge) || g->err->code)
        return part.edge;
    if (cut_equal(&is, cut))
        part.edge = assemble(g, &part);
    else { /* Of what is whole, beside it: only the area is sent. */
        struct edge whole = grid_whole(g, edge);
        if (!edge_exists(whole))
            return EDGE_NONE;
        struct build *b = grid_builder(g, graph_node(g->from, edge.node), cell);
        b->device = graph_node(g->r.to, whole.node)->device;
        part.edge = cut_slice(b, whole, cut, area);
    }
    if (edge_exists(part.edge))
        vec_push_in(&g->r.arena, &g->known, part);
    return part.edge;
}

/* ---- and back ----
 *
 * What windows give their regions of the image: each cell sends back what is in another's tile.
 *
 * The borders of all that a tile gets part it into blocks, of which each is a sum of some; most of
 * a tile is one block that only its own cell gives. So sums are made of the halo alone. */

/* Zeros of the size of an area, with the other axes of a value that is cut so: a cell of it, all
 * around which there is padding: nothing of a value is kept but its type and its other axes. */
static struct edge make_zeros(struct build *b, struct edge like, const struct partition *cut,
                              struct area area)
{
    int32_t pads[2 * SHAPE_RANK_MAX] = {0};
    struct shape shape = shape_matrix(build_shape(b, like)->rank, 2);
    struct tensor paddings = tensor_borrow(INT32, &shape, pads);
    struct edge cell = cut_slice(b, like, cut, (struct area){.to = {1, 1}});
    for (int d = 0; d < 2; d++)
        pads[2 * cut->axis[d] + 1] = (int32_t)(area.to[d] - area.from[d] - 1);
    cell = build_unary(b, "ZerosLike", cell);
    return build_binary(b, "Pad", cell, build_const(b, &paddings));
}

struct scatter {
    struct grid *g;
    const struct node *node;
    int to;                  /* whose tile is made */
    struct grid_part *given; /* by cell: what it has of it, on `to` */
    int64_t *borders[2];     /* of blocks */
    int n_borders[2];
};

static void add_borders(struct scatter *s, struct area area)
{
    for (int d = 0; d < 2; d++) {
        for (int end = 0; end < 2; end++) {
            int64_t *borders = s->borders[d], at = end ? area.to[d] : area.from[d];
            int i = s->n_borders[d];
            while (i > 0 && borders[i - 1] > at)
                i--;
            if (i > 0 && borders[i - 1] == at)
                continue;
            for (int k = s->n_borders[d]++; k > i; k--)
                borders[k] = borders[k - 1];
            borders[i] = at;
        }
    }
}

/* The sum of what windows give a block; where none sees it there are zeros like those given. */
static struct edge make_block(const struct scatter *s, const struct partition *cut,
                              struct area block)
{
    struct grid *g = s->g;
    struct edge *terms = arena_array(&g->r.arena, (size_t)g->n, sizeof *terms), like = EDGE_NONE;
    int n = 0;
    for (int k = 0; k < g->n && !g->err->code; k++) {
        if (!edge_exists(s->given[k].edge))
            continue;
        like = edge_exists(like) ? like : s->given[k].edge;
        if (!area_is_empty(area_meet(s->given[k].area, block)))
            terms[n++] = crop(g, s->node, &s->given[k], block, s->to);
    }
    struct build *b = grid_builder(g, s->node, s->to);
    if (n > 1)
        return build_op(b, "AddN", terms, n, NULL, 0);
    return n ? terms[0] : make_zeros(b, like, cut, block);
}

static struct edge make_tile(const struct scatter *s, const struct partition *cut)
{
    struct grid *g = s->g;
    int n[2] = {s->n_borders[0] - 1, s->n_borders[1] - 1};
    struct edge *rows = arena_array(&g->r.arena, (size_t)(n[0] + n[1]), sizeof *rows);
    for (int i = 0; i < n[0]; i++) {
        const int64_t *y = s->borders[0] + i, *x = s->borders[1];
        struct edge *row = rows + n[0];
        for (int k = 0; k < n[1]; k++)
            row[k] = make_block(s, cut, (struct area){{y[0], x[k]}, {y[1], x[k + 1]}});
        rows[i] = cut_concat(grid_builder(g, s->node, s->to), cut->axis[1], row, n[1]);
    }
    return cut_concat(grid_builder(g, s->node, s->to), cut->axis[0], rows, n[0]);
}

void grid_scatter(struct grid *g, const struct node *node, const struct partition *cut,
                  const struct area *areas, const struct edge *parts)
{
    size_t n = (size_t)g->n;
    struct scatter s = {.g = g, .node = node};
    struct edge *tiles = arena_array(&g->r.arena, n, sizeof *tiles);
    s.given = arena_array(&g->r.arena, n, sizeof *s.given);
    for (int d = 0; d < 2; d++)
        s.borders[d] = arena_array(&g->r.arena, 2 * n + 2, sizeof **s.borders);
    for (s.to = 0; s.to < g->n && !g->err->code; s.to++) {
        /* Each cell sends what it has of the tile. */
        struct area tile = cut_area(cut, s.to);
        memset(s.n_borders, 0, sizeof s.n_borders);
        add_borders(&s, tile);
        for (int k = 0; k < g->n; k++) {
            struct grid_part *given = &s.given[k];
            struct area area = area_meet(areas[k], tile);
            *given = (struct grid_part){.edge = EDGE_NONE, .cut = *cut, .area = areas[k]};
            if (area_is_empty(area) || g->err->code)
                continue;
            add_borders(&s, area);
            given->edge = parts[k];
            if (k == s.to)
                continue;
            given->edge = crop(g, node, given, area, k);
            given->area = area;
        }
        tiles[s.to] = g->err->code ? EDGE_NONE : make_tile(&s, cut);
    }
    g->parts[node->id] = tiles;
}
