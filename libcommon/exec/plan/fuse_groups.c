/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/plan/fuse_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The node would no longer be there to have them. */
static bool has_marks(const struct node *node)
{
    for (int i = 0; i < node->n_attrs; i++)
        if (fuse_is_mark(node->attrs[i].name))
            return true;
    return false;
}

/* Those that a node names, as what it comes after, or is to be with ("loc:@NAME"). */
static void bind_named(struct fuse_groups *g, const struct node *node)
{
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
}

static void look_at_all(struct fuse_groups *g)
{
    for (size_t i = 0; i < g->graph->nodes.n; i++) {
        const struct node *node = graph_node(g->graph, (int)i);
        g->end[i] = -1;
        g->bound[i] |= node->n_controls || has_marks(node);
        bind_named(g, node);
        for (int k = 0; k < node->n_inputs; k++) {
            g->uses[node->inputs[k].node]++;
            g->taker[node->inputs[k].node] = node;
        }
        for (int k = 0; k < node->n_controls; k++)
            g->uses[node->controls[k]]++;
    }
    for (int i = 0; i < g->options->n_keep; i++)
        g->uses[g->options->keep[i].node]++;
}

bool fuse_groups_init(struct fuse_groups *g, const struct graph *graph,
                      const struct fuse_options *options, struct fusion *fused)
{
    struct error ignored = ERROR_INIT;
    size_t n = graph->nodes.n + 1;
    *fused = (struct fusion){.node_of = mem_array(n, sizeof *fused->node_of)};
    *g = (struct fuse_groups){
        .graph = graph, .options = options, .n_outputs = 1, .fused = fused, .memory = ARENA_INIT};
    g->order = arena_array(&g->memory, n, sizeof *g->order);
    g->uses = arena_array(&g->memory, n, sizeof *g->uses);
    g->taker = arena_array(&g->memory, n, sizeof *g->taker);
    g->bound = arena_array(&g->memory, n, sizeof *g->bound);
    g->named = arena_array(&g->memory, n, sizeof *g->named);
    g->end = arena_array(&g->memory, n, sizeof *g->end);
    look_at_all(g);
    return !graph_order(graph, g->order, &ignored);
}

void fuse_groups_release(struct fuse_groups *g)
{
    arena_release(&g->memory);
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
        if (fuse_source(g, node->inputs[i])->is_ref)
            return true;
    return false;
}

bool fuse_same_place(const struct node *a, const struct node *b)
{
    return !strcmp(a->device, b->device) && !strcmp(a->assigned, b->assigned);
}

bool fuse_attrs_agree(const struct node *a, const struct node *b)
{
    for (int i = 0; i < b->n_attrs; i++) {
        const struct attr_value *its = node_attr(a, b->attrs[i].name);
        if (its && !attr_equal(its, &b->attrs[i].value))
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

/* The new node that stands for one of the old graph, or for the group that it is part of. */
static int standing_for(const struct fuse_groups *g, int old)
{
    return g->fused->node_of[g->end[old] < 0 ? old : g->end[old]];
}

static void connect(const struct fuse_groups *g, const struct node *node)
{
    struct node *copy = graph_node(g->to, standing_for(g, node->id));
    bool is_end = g->fused->node_of[node->id] >= 0;
    for (int i = 0; is_end && i < copy->n_inputs; i++)
        copy->inputs[i] = fusion_edge(g->fused, copy->inputs[i]);
    for (int i = 0; i < node->n_controls; i++)
        graph_add_control(g->to, copy, standing_for(g, node->controls[i]));
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

void fuse_rewrite(struct fuse_groups *g, const struct device_pass *pass)
{
    g->fused->graph = g->to = graph_new(g->graph->registry);
    for (size_t i = 0; i < g->graph->nodes.n; i++) {
        const struct node *node = graph_node(g->graph, (int)i);
        g->fused->node_of[i] = -1;
        if (g->end[i] < 0)
            g->fused->node_of[i] = graph_add_copy(g->to, node)->id;
        else if (g->end[i] == (int)i)
            g->fused->node_of[i] = add_group(g, node, pass);
    }
    for (size_t i = 0; i < g->graph->nodes.n; i++)
        connect(g, graph_node(g->graph, (int)i));
}
