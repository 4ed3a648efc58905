/* SPDX-License-Identifier: Apache-2.0
 *
 * What windows give their regions of the image: each cell sends back what is in another's tile.
 *
 * The borders of all that a tile gets part it into blocks, of which each is a sum of some; most of
 * a tile is one block that only its own cell gives. So sums are made of the halo alone.
 */
#include <string.h>

#include "base/memory.h"
#include "pass/grid/grid_private.h"

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
    return grid_zeros(b, like, s->cut, block);
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
