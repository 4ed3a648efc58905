/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/plan/fuse_private.h"

#include <string.h>

#include "base/memory.h"

const struct device_pass device_passes[N_DEVICE_PASSES] = {
    {"pools", "gradients of MaxPool take the places that it leaves, not its image", fuse_pools_find,
     fuse_pools_describe},
    {"updates", "became part of an update", fuse_updates_find, fuse_updates_describe},
    [DEVICE_PASS_SUMS] = {"sums", "became part of the sum or update that takes them",
                          fuse_sums_find, fuse_sums_describe},
    {"products", "became part of the product before them", fuse_products_find,
     fuse_products_describe},
    {"chains", "became part of the element-wise op that takes them", fuse_chains_find,
     fuse_chains_describe},
    [DEVICE_PASS_VIEWS] = {"views", NULL, NULL, NULL},
};

int device_pass_find(const char *name)
{
    for (int i = 0; i < N_DEVICE_PASSES; i++)
        if (!strcmp(device_passes[i].name, name))
            return i;
    return -1;
}

void fusion_release(struct fusion *fused)
{
    graph_free(fused->graph);
    for (size_t i = 0; i < fused->before.n; i++)
        graph_free(fused->before.items[i]);
    vec_release(&fused->before);
    mem_free(fused->node_of);
    *fused = (struct fusion){0};
}

static void run_pass(const struct device_pass *pass, const struct graph *graph,
                     const struct fuse_options *options, struct fusion *fused)
{
    struct fuse_groups groups;
    if (fuse_groups_init(&groups, graph, options, fused))
        pass->find(&groups);
    if (fused->n_gone)
        fuse_rewrite(&groups, pass);
    fuse_groups_release(&groups);
}

/* Takes the changes of one more pass. */
static void follow(struct fusion *fused, struct fusion *next, size_t n_nodes)
{
    for (size_t i = 0; i < n_nodes; i++)
        if (fused->node_of[i] >= 0)
            fused->node_of[i] = next->node_of[fused->node_of[i]];
    if (fused->graph)
        vec_push(&fused->before, fused->graph);
    fused->graph = next->graph;
    fused->n_gone += next->n_gone;
    next->graph = NULL;
}

void fuse_graph(const struct graph *graph, const struct fuse_options *options, struct fusion *fused,
                int n_gone[N_DEVICE_PASSES])
{
    size_t n = graph->nodes.n, n_keep = (size_t)options->n_keep;
    struct edge *keep = mem_array(n_keep + 1, sizeof *keep);
    struct fuse_options now = *options;
    *fused = (struct fusion){.node_of = mem_array(n + 1, sizeof *fused->node_of)};
    for (size_t i = 0; i < n; i++)
        fused->node_of[i] = (int)i;
    for (int p = 0; p < N_DEVICE_PASSES; p++) {
        struct fusion next;
        if (n_gone)
            n_gone[p] = 0;
        if (options->without >> p & 1 || !device_passes[p].find)
            continue;
        for (size_t i = 0; i < n_keep; i++)
            keep[i] = fusion_edge(fused, options->keep[i]);
        now.keep = keep;
        run_pass(&device_passes[p], fused->graph ? fused->graph : graph, &now, &next);
        if (n_gone)
            n_gone[p] = next.n_gone;
        if (next.graph)
            follow(fused, &next, n);
        fusion_release(&next);
    }
    mem_free(keep);
}

/* ---- with names ---- */

typedef VEC(struct edge) edge_vec;

static void copy_entry(const struct entry *entry, struct fusion *fused)
{
    struct edge *edges = mem_array((size_t)entry->n_edges + 1, sizeof *edges);
    for (int k = 0; k < entry->n_edges; k++)
        edges[k] = fusion_edge(fused, entry->edges[k]);
    graph_add_entry(fused->graph, entry->name, edges, entry->n_edges);
    mem_free(edges);
}

static int copy_names(const struct graph *graph, struct fusion *fused, struct error *err)
{
    int code = 0;
    graph_add_history(fused->graph, graph);
    for (size_t i = 0; i < graph->entries.n; i++)
        copy_entry(&graph->entries.items[i], fused);
    for (size_t i = 0; i < graph->aliases.n && !code; i++)
        code = graph_add_alias(fused->graph, graph->aliases.items[i].name,
                               fusion_edge(fused, graph->aliases.items[i].edge), err);
    for (size_t i = 0; i < graph->nodes.n && !code; i++)
        if (fused->node_of[i] < 0)
            code = graph_add_removed(fused->graph, graph_node(graph, (int)i)->name, err);
    return code;
}

int fuse_named_graph(const struct graph *graph, const struct fuse_options *options,
                     struct fusion *fused, int n_gone[N_DEVICE_PASSES], struct error *err)
{
    edge_vec keep = VEC_INIT;
    struct fuse_options all = *options;
    for (int i = 0; i < options->n_keep; i++)
        vec_push(&keep, options->keep[i]);
    for (size_t i = 0; i < graph->entries.n; i++)
        for (int k = 0; k < graph->entries.items[i].n_edges; k++)
            vec_push(&keep, graph->entries.items[i].edges[k]);
    for (size_t i = 0; i < graph->aliases.n; i++)
        vec_push(&keep, graph->aliases.items[i].edge);
    all.keep = keep.items;
    all.n_keep = (int)keep.n;
    fuse_graph(graph, &all, fused, n_gone);
    vec_release(&keep);
    return fused->graph ? copy_names(graph, fused, err) : 0;
}
