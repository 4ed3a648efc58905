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
