/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/grid/grid.h"

#include <stdio.h>
#include <string.h>

#include "graph/device_name.h"
#include "graph/prefix.h"
#include "pass/grid/grid_private.h"

bool grid_parse(struct grid_options *options, const char *text)
{
    int end = 0;
    *options = (struct grid_options){.rows = 0};
    return sscanf(text, "%4dx%4d%n", &options->rows, &options->columns, &end) == 2 && !text[end] &&
           options->rows > 0 && options->columns > 0 && options->rows * options->columns >= 2 &&
           options->rows * options->columns <= GRID_CELLS_MAX;
}

static int open_grid(struct grid *g)
{
    const char *pattern = g->options->device ? g->options->device : "/job:worker/task:*";
    size_t n = g->from->nodes.n + 1;
    g->devices = arena_array(&g->arena, (size_t)g->n, sizeof *g->devices);
    g->role = arena_alloc(&g->arena, n);
    g->stays_whole = arena_alloc(&g->arena, n);
    g->cut = arena_array(&g->arena, n, sizeof *g->cut);
    g->parts = arena_array(&g->arena, n, sizeof *g->parts);
    g->names = arena_array(&g->arena, n, sizeof *g->names);
    g->prefix = graph_free_prefix(&g->r.to->arena, g->from, "tile");
    for (int k = 0; k < g->n; k++) {
        /* The pattern with the cell's number for its "*". */
        struct device_name name;
        struct error why = ERROR_INIT;
        const char *text = strchr(pattern, '*') ? device_pattern_text(&g->arena, pattern, k) : NULL;
        if (!text)
            return error_set(g->err, ERR_USAGE,
                             "--towers '%s' is no device with a '*' for the cell's number",
                             pattern);
        if (device_name_parse(&name, text, &why))
            return error_set(g->err, ERR_USAGE, "--towers '%s': %s", pattern, why.text);
        g->devices[k] = device_name_text(&g->r.to->arena, &name);
    }
    return 0;
}

static int build(struct grid *g, struct graph **to)
{
    int code = open_grid(g);
    bool found = false;
    g->rules = (struct copy_rules){g->from, g->r.to, grid_leader, grid_attr, g};
    if (!code)
        code = grid_find(g);
    if (!code)
        for (size_t i = 0; i < g->from->nodes.n; i++)
            found |= g->role[i] == GRID_TILES;
    if (!code && !found)
        code = error_set(g->err, ERR_DATA,
                         "no op with windows has images of known size that %d x %d tiles can be "
                         "cut of",
                         g->rows, g->columns);
    for (size_t i = 0; !code && i < g->from->nodes.n; i++)
        if (g->role[i] == GRID_VARIABLE)
            code = grid_visit_variable(g, graph_node(g->from, (int)i));
    for (size_t i = 0; !code && i < g->from->nodes.n; i++)
        code = grid_visit(g, graph_node(g->from, g->r.order[i]));
    if (!code) {
        /* Nodes that entries, aliases or the script name are made whole. */
        const struct graph *from = g->from;
        for (size_t i = 0; i < from->entries.n; i++)
            for (int k = 0; k < from->entries.items[i].n_edges; k++)
                if (from->entries.items[i].edges[k].slot != CONTROL_SLOT)
                    grid_whole(g, from->entries.items[i].edges[k]);
        for (size_t i = 0; i < from->aliases.n; i++)
            if (from->aliases.items[i].edge.slot != CONTROL_SLOT)
                grid_whole(g, from->aliases.items[i].edge);
        graph_each(node, from) {
            if (g->cut[node->id].is_cut && node->n_outputs == 1 && !node->outputs[0].is_ref &&
                !strchr(node->name, '/') && rewrite_has_own_name(&g->r, node))
                grid_whole(g, (struct edge){node->id, 0});
        }
        code = g->err->code;
    }
    return rewrite_finish(&g->r, code, to, g->err);
}

int grid_graph(const struct graph *from, const struct grid_options *options, struct graph **to,
               struct error *err)
{
    const struct pass_options pass = {.note = options->note, .context = options->context};
    struct grid g = {.from = from,
                     .options = options,
                     .rows = options->rows,
                     .columns = options->columns,
                     .n = options->rows * options->columns,
                     .err = err};
    *to = NULL;
    int code = frames_new(from, &g.frames, err);
    if (!code) {
        code = rewrite_open(&g.r, from, &pass, err);
        if (!code)
            code = build(&g, to);
        frames_free(g.frames);
    }
    arena_release(&g.arena);
    return code;
}
