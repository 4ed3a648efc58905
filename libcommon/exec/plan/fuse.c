/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/plan/fuse_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* ---- groups of nodes ---- */

bool fuse_has_marks(const struct node *node, bool is_update)
{
    for (int i = 0; i < node->n_attrs; i++)
        if (fuse_is_mark(node->attrs[i].name) &&
            !(is_update && !strcmp(node->attrs[i].name, "_class")))
            return true;
    return false;
}

static void look_at_all(struct fuse_groups *g, const struct fusion *fused)
{
    graph_each(node, g->graph) {
        g->end[node->id] = -1;
        g->bound[node->id] |= node->n_controls || fuse_has_marks(node, false); /* would be lost */
        /* A node names those it should come after, or be colocated with ("loc:@NAME"). */
        for (int k = 0; k < node->n_attrs; k++) {
            const struct attr_value *names = &node->attrs[k].value;
            bool is_mark = fuse_is_mark(node->attrs[k].name) && names->kind == ATTR_LIST_STRING;
            for (int i = 0; is_mark && i < names->n; i++) {
                const char *at = strchr(names->strings[i], '@');
                const struct node *named = graph_find(g->graph, at ? at + 1 : names->strings[i]);
                if (named)
                    g->bound[named->id] = g->named[named->id] = true;
            }
        }
        for (int k = 0; k < node->n_inputs; k++)
            g->taker[node->inputs[k].node] = node;
        for (int k = 0; k < node->n_inputs + node->n_controls; k++)
            g->uses[node_dependency(node, k).node]++;
    }
    for (int i = 0; i < g->options->n_keep; i++)
        g->uses[fusion_edge(fused, g->options->keep[i]).node]++;
    graph_each_named(at, g->graph)
        g->uses[at.edge.node]++;
}

/* Looks at all nodes of the graph as earlier passes have left it; none is in a group yet. False:
 * the graph has a cycle, which is reported elsewhere. */
static bool groups_init(struct fuse_groups *g, const struct graph *graph,
                        const struct fuse_options *options, const struct fusion *fused)
{
    struct error ignored = ERROR_INIT;
    graph = fused->graph ? fused->graph : graph;
    size_t n = graph->nodes.n + 1;
    *g = (struct fuse_groups){
        .graph = graph, .options = options, .n_outputs = 1, .memory = ARENA_INIT};
    g->node_of = arena_array(&g->memory, n, sizeof *g->node_of);
    g->order = arena_array(&g->memory, n, sizeof *g->order);
    g->uses = arena_array(&g->memory, n, sizeof *g->uses);
    g->taker = arena_array(&g->memory, n, sizeof *g->taker);
    g->bound = arena_array(&g->memory, n, sizeof *g->bound);
    g->named = arena_array(&g->memory, n, sizeof *g->named);
    g->end = arena_array(&g->memory, n, sizeof *g->end);
    look_at_all(g, fused);
    return !graph_order(graph, g->order, &ignored);
}

bool fuse_can_go(const struct fuse_groups *g, const struct node *node)
{
    const struct node_output *out = &node->outputs[0];
    return node->n_outputs == 1 && (out->type == FLOAT32 || out->type == FLOAT64) &&
           shape_is_known(&out->shape) && !g->bound[node->id];
}

bool fuse_reads_variables(const struct fuse_groups *g, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (graph_output(g->graph, node->inputs[i])->is_ref)
            return true;
    return false;
}

bool fuse_is_own(const struct fuse_groups *g, const struct node *node, const struct node *taker)
{
    return g->uses[node->id] == 1 && !g->named[node->id] && !node->n_controls &&
           fuse_same_place(node, taker);
}

struct edge fuse_gradient(const struct fuse_groups *g, const struct node *update)
{
    struct edge edge = update->inputs[update->op->def->descent.gradient];
    const struct node *node;
    while (node_is(node = graph_node(g->graph, edge.node), "Identity") &&
           fuse_is_own(g, node, update))
        edge = node->inputs[0];
    return edge;
}

void fuse_claim_gradient(struct fuse_groups *g, const struct node *update, struct edge from,
                         int end)
{
    struct edge edge = update->inputs[update->op->def->descent.gradient];
    for (; edge.node != from.node; edge = graph_node(g->graph, edge.node)->inputs[0])
        g->end[edge.node] = end;
}

bool fuse_same_place(const struct node *a, const struct node *b)
{
    return !strcmp(a->device, b->device) && !strcmp(a->assigned, b->assigned);
}

bool fuse_attrs_agree(const struct node *a, const struct node *b)
{
    for (int i = 0; i < b->n_attrs; i++) {
        const char *name = b->attrs[i].name;
        const struct attr_value *its = node_attr(a, name);
        bool counts = !fuse_is_mark(name) && strcmp(name, "use_locking") != 0;
        if (counts && its && !attr_equal(its, &b->attrs[i].value))
            return false;
    }
    return true;
}

/* ---- the new graph ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct attr *)a)->name, ((const struct attr *)b)->name);
}

void fuse_set_attrs(struct fuse_groups *g, const struct node *node, const struct attr *more, int n,
                    struct node_spec *spec)
{
    size_t n_own = (size_t)node->n_attrs, n_all = n_own + (size_t)n;
    struct attr *attrs = arena_array(&g->to->arena, n_all, sizeof *attrs);
    memcpy(attrs, node->attrs, n_own * sizeof *attrs);
    memcpy(attrs + n_own, more, (size_t)n * sizeof *attrs);
    qsort(attrs, n_all, sizeof *attrs, compare_names);
    spec->attrs = attrs;
    spec->n_attrs = (int)n_all;
}

void fuse_take_inputs(struct fuse_groups *g, fuse_edges *inputs, struct node_spec *spec)
{
    spec->inputs = arena_copy(&g->to->arena, inputs->items, inputs->n * sizeof *inputs->items);
    spec->n_inputs = (int)inputs->n;
    vec_release(inputs);
}

/* The new node that stands for a node of the old graph, or for its group. */
static int standing_for(const struct fuse_groups *g, int old)
{
    return g->node_of[g->end[old] < 0 ? old : g->end[old]];
}

static int add_group(struct fuse_groups *g, const struct node *end, const struct device_pass *pass)
{
    struct node_spec spec = {.name = end->name,
                             .device = end->device,
                             .assigned = end->assigned,
                             .file = end->file,
                             .line = end->line};
    int n_outputs = g->n_outputs;
    g->outputs = end->outputs;
    pass->describe(g, end, &spec);
    int id = graph_add_trusted(g->to, &spec, g->outputs, g->n_outputs)->id;
    g->n_outputs = n_outputs;
    return id;
}

/* Entries and aliases name values that no group hides. */
static void copy_names(struct fuse_groups *g)
{
    struct error ignored = ERROR_INIT; /* the names are free, as they are in the old graph */
    vec_each(entry, &g->graph->entries) {
        size_t n = (size_t)entry->n_edges;
        struct edge *edges = arena_copy(&g->memory, entry->edges, n * sizeof *edges);
        for (size_t k = 0; k < n; k++)
            edges[k].node = g->node_of[edges[k].node];
        graph_add_entry(g->to, entry->name, edges, entry->n_edges);
    }
    vec_each(alias, &g->graph->aliases) {
        struct edge edge = {g->node_of[alias->edge.node], alias->edge.slot};
        graph_add_alias(g->to, alias->name, edge, &ignored);
    }
}

/* Writes the new graph: for each group the node that the pass describes, and all other nodes. */
static void rewrite_groups(struct fuse_groups *g, const struct device_pass *pass)
{
    g->to = graph_new(g->graph->registry);
    graph_each(node, g->graph) {
        g->node_of[node->id] = -1;
        if (g->end[node->id] < 0)
            g->node_of[node->id] = graph_add_copy(g->to, node)->id;
        else if (g->end[node->id] == node->id)
            g->node_of[node->id] = add_group(g, node, pass);
    }
    graph_each(node, g->graph) {
        struct node *copy = graph_node(g->to, standing_for(g, node->id));
        bool is_end = g->node_of[node->id] >= 0;
        for (int i = 0; is_end && i < copy->n_inputs; i++)
            copy->inputs[i].node = g->node_of[copy->inputs[i].node];
        for (int i = 0; i < node->n_controls; i++)
            graph_add_control(g->to, copy, standing_for(g, node->controls[i]));
    }
    copy_names(g);
}

/* ---- the passes ---- */

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
    vec_each(graph, &fused->graphs) {
        graph_free(*graph);
    }
    vec_release(&fused->graphs);
    mem_free(fused->node_of);
    *fused = (struct fusion){0};
}

/* Returns how many nodes the pass removed. */
static int run_pass(const struct device_pass *pass, const struct graph *graph,
                    const struct fuse_options *options, struct fusion *fused)
{
    struct fuse_groups groups;
    if (groups_init(&groups, graph, options, fused))
        pass->find(&groups);
    if (groups.n_gone) {
        rewrite_groups(&groups, pass);
        for (size_t i = 0; i < graph->nodes.n; i++)
            if (fused->node_of[i] >= 0)
                fused->node_of[i] = groups.node_of[fused->node_of[i]];
        fused->graph = groups.to;
        vec_push(&fused->graphs, fused->graph);
        fused->n_gone += groups.n_gone;
    }
    arena_release(&groups.memory);
    return groups.n_gone;
}

void fuse_graph(const struct graph *graph, const struct fuse_options *options, struct fusion *fused,
                int n_gone[N_DEVICE_PASSES])
{
    size_t n = graph->nodes.n;
    *fused = (struct fusion){.node_of = mem_array(n + 1, sizeof *fused->node_of)};
    for (size_t i = 0; i < n; i++)
        fused->node_of[i] = (int)i;
    for (int p = 0; p < N_DEVICE_PASSES; p++) {
        bool runs = device_passes[p].find && !(options->without >> p & 1);
        int gone = runs ? run_pass(&device_passes[p], graph, options, fused) : 0;
        if (n_gone)
            n_gone[p] = gone;
    }
}

void fusion_add_history(const struct fusion *fused, const struct graph *graph)
{
    struct error ignored = ERROR_INIT;
    if (!fused->graph)
        return;
    graph_add_history(fused->graph, graph);
    graph_each(node, graph) {
        if (fused->node_of[node->id] < 0)
            graph_add_removed(fused->graph, node->name, &ignored);
    }
}
