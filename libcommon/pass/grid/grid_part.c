/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions: what a cell has of its own tile and what it gets of others'. Each is made once, however
 * many ops look at it.
 */
#include <string.h>

#include "base/memory.h"
#include "pass/grid/grid_private.h"

static struct edge known_part(const struct grid *g, const struct grid_part *wanted)
{
    vec_each(p, &g->known) {
        if (p->cell == wanted->cell && edge_equal(p->of, wanted->of) &&
            grid_cut_equal(p->cut, wanted->cut) && grid_area_equal(p->area, wanted->area))
            return p->edge;
    }
    return EDGE_NONE;
}

/* Tiles of an area, put together on the device of a builder: rows of it, then all. `pieces[k]` is
 * what cell k has of it, if it has some. */
static struct edge put_together(struct grid *g, struct build *b, struct grid_cut cut,
                                const struct edge *pieces)
{
    struct edge rows[GRID_CELLS_MAX], row[GRID_CELLS_MAX];
    int n_rows = 0;
    for (int i = 0; i < g->rows; i++) {
        int n = 0;
        for (int k = i * g->columns; k < (i + 1) * g->columns; k++)
            if (edge_exists(pieces[k]))
                row[n++] = pieces[k];
        if (n)
            rows[n_rows++] = grid_concat(b, cut.x, row, n);
    }
    return n_rows ? grid_concat(b, cut.y, rows, n_rows) : EDGE_NONE;
}

struct edge grid_whole(struct grid *g, struct edge edge)
{
    struct edge there = rewrite_edge(&g->r, edge);
    const struct node *node = graph_node(g->from, edge.node);
    if (edge_exists(there) || g->err->code || !g->parts[edge.node])
        return there;
    struct build *b = grid_builder(g, node, -1, grid_device(g, node));
    there = put_together(g, b, g->cut[edge.node], g->parts[edge.node]);
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
        vec_push_in(&g->arena, &g->known, part);
    }
    return part.edge;
}

static struct edge assemble(struct grid *g, const struct grid_part *part)
{
    const struct node *node = graph_node(g->from, part->of.node);
    struct grid_area mine = grid_tile(g, part->cut, part->cell);
    if (grid_area_equal(grid_meet(mine, part->area), part->area)) {
        struct grid_area within = {part->area.y0 - mine.y0, part->area.y1 - mine.y0,
                                   part->area.x0 - mine.x0, part->area.x1 - mine.x0};
        struct edge tile = g->parts[node->id][part->cell];
        if (grid_area_equal(mine, part->area) || g->err->code)
            return tile;
        return grid_slice(grid_builder(g, node, part->cell, g->devices[part->cell]), tile,
                          part->cut, within);
    }
    struct edge *pieces = arena_array(&g->arena, (size_t)g->n, sizeof *pieces);
    for (int k = 0; k < g->n; k++) {
        struct grid_area area = grid_meet(part->area, grid_tile(g, part->cut, k));
        pieces[k] = grid_is_empty(area) ? EDGE_NONE : grid_take(g, part->of, part->cut, area, k);
    }
    return put_together(g, grid_builder(g, node, part->cell, g->devices[part->cell]), part->cut,
                        pieces);
}

struct edge grid_take(struct grid *g, struct edge edge, struct grid_cut cut, struct grid_area area,
                      int cell)
{
    struct grid_part part = {.of = edge, .cell = cell, .cut = cut, .area = area};
    if (!cut.is_cut)
        return grid_local(g, edge, cell);
    part.edge = known_part(g, &part);
    if (edge_exists(part.edge) || g->err->code)
        return part.edge;
    if (grid_cut_equal(grid_cut_of(g, edge), cut))
        part.edge = assemble(g, &part);
    else { /* Of what is whole, beside it: only the area is sent. */
        struct edge whole = grid_whole(g, edge);
        if (!edge_exists(whole))
            return EDGE_NONE;
        struct build *b = grid_builder(g, graph_node(g->from, edge.node), cell,
                                       graph_node(g->r.to, whole.node)->device);
        part.edge = grid_slice(b, whole, cut, area);
    }
    if (edge_exists(part.edge))
        vec_push_in(&g->arena, &g->known, part);
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
static struct edge make_zeros(struct build *b, struct edge like, struct grid_cut cut,
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

struct scatter {
    struct grid *g;
    const struct node *node;
    struct grid_cut cut;
    int to;                  /* whose tile is made */
    struct grid_part *given; /* by cell: what it has of it, on `to` */
    int64_t *ys, *xs;        /* borders of blocks */
    int n_ys, n_xs;
};

static struct build *builder(const struct scatter *s, int cell)
{
    return grid_builder(s->g, s->node, cell, s->g->devices[cell]);
}

/* The area of a part, on the device of `cell`. */
static struct edge crop(const struct scatter *s, const struct grid_part *part,
                        struct grid_area area, int cell)
{
    struct grid_area within = {area.y0 - part->area.y0, area.y1 - part->area.y0,
                               area.x0 - part->area.x0, area.x1 - part->area.x0};
    if (grid_area_equal(area, part->area))
        return part->edge;
    return grid_slice(builder(s, cell), part->edge, s->cut, within);
}

static void add_border(int64_t *borders, int *n, int64_t at)
{
    int i = *n;
    for (int k = 0; k < *n; k++)
        if (borders[k] == at)
            return;
    for (; i > 0 && borders[i - 1] > at; i--)
        borders[i] = borders[i - 1];
    borders[i] = at;
    ++*n;
}

static void add_borders(struct scatter *s, struct grid_area area)
{
    add_border(s->ys, &s->n_ys, area.y0);
    add_border(s->ys, &s->n_ys, area.y1);
    add_border(s->xs, &s->n_xs, area.x0);
    add_border(s->xs, &s->n_xs, area.x1);
}

/* Nothing, where no window sees a block: then there are zeros. */
static struct edge make_block(const struct scatter *s, struct grid_area block, struct edge like)
{
    struct grid *g = s->g;
    struct edge *terms = arena_array(&g->arena, (size_t)g->n, sizeof *terms);
    int n = 0;
    for (int k = 0; k < g->n && !g->err->code; k++)
        if (edge_exists(s->given[k].edge) && !grid_is_empty(grid_meet(s->given[k].area, block)))
            terms[n++] = crop(s, &s->given[k], block, s->to);
    struct build *b = builder(s, s->to);
    if (n > 1)
        return build_op(b, "AddN", terms, n, NULL, 0);
    if (n)
        return terms[0];
    return make_zeros(b, like, s->cut, block);
}

static struct edge make_tile(const struct scatter *s)
{
    struct grid *g = s->g;
    struct edge like = EDGE_NONE;
    struct edge *rows = arena_array(&g->arena, (size_t)s->n_ys, sizeof *rows);
    struct edge *row = arena_array(&g->arena, (size_t)s->n_xs, sizeof *row);
    for (int k = 0; k < g->n && !edge_exists(like); k++)
        like = s->given[k].edge;
    for (int y = 0; y + 1 < s->n_ys; y++) {
        for (int x = 0; x + 1 < s->n_xs; x++) {
            struct grid_area block = {s->ys[y], s->ys[y + 1], s->xs[x], s->xs[x + 1]};
            row[x] = make_block(s, block, like);
        }
        rows[y] = grid_concat(builder(s, s->to), s->cut.x, row, s->n_xs - 1);
    }
    return grid_concat(builder(s, s->to), s->cut.y, rows, s->n_ys - 1);
}

void grid_scatter(struct grid *g, const struct node *node, struct grid_cut cut,
                  const struct grid_area *areas, const struct edge *parts)
{
    size_t n = (size_t)g->n;
    struct scatter s = {.g = g, .node = node, .cut = cut};
    struct edge *tiles = arena_array(&g->arena, n, sizeof *tiles);
    s.given = arena_array(&g->arena, n, sizeof *s.given);
    s.ys = arena_array(&g->arena, 2 * n + 2, sizeof *s.ys);
    s.xs = arena_array(&g->arena, 2 * n + 2, sizeof *s.xs);
    for (s.to = 0; s.to < g->n && !g->err->code; s.to++) {
        /* Each cell sends what it has of the tile. */
        struct grid_area tile = grid_tile(s.g, s.cut, s.to);
        s.n_ys = s.n_xs = 0;
        add_borders(&s, tile);
        for (int k = 0; k < s.g->n; k++) {
            struct grid_part part = {.cell = k, .area = areas[k], .edge = parts[k]};
            struct grid_area area = grid_meet(areas[k], tile);
            s.given[k] = (struct grid_part){.edge = EDGE_NONE};
            if (grid_is_empty(area) || s.g->err->code)
                continue;
            add_borders(&s, area);
            s.given[k] = part;
            if (k == s.to)
                continue;
            s.given[k].edge = crop(&s, &part, area, k);
            s.given[k].area = area;
        }
        tiles[s.to] = g->err->code ? EDGE_NONE : make_tile(&s);
    }
    g->parts[node->id] = tiles;
}
