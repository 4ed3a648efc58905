/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/dense/dense.h"

#include <string.h>

#include "pass/dense/dense_private.h"

/* ---- nodes ---- */

static struct node *add(struct dense_cutter *c, const struct node *node, const struct edge *inputs,
                        struct dense_layout output)
{
    bool draws = node_has(node, OP_RANDOM) && output.form != DENSE_OWN;
    struct node_spec spec = {.op = node->op->def->name,
                             .name = node->name,
                             .inputs = inputs,
                             .n_inputs = node->n_inputs,
                             .attrs = node->attrs,
                             .n_attrs = node->n_attrs,
                             .device = draws ? "/device:CPU:0" : node->device,
                             .file = node->file,
                             .line = node->line};
    bool cuts = node_is(node, "Variable") && output.form == DENSE_CUT;
    if (cuts) {
        /* A part of it, as long as it comes out. */
        int axis = c->cut[node->id];
        struct attr *attrs = arena_array(&c->to->arena, (size_t)node->n_attrs + 2, sizeof *attrs);
        struct shape part = node->outputs[0].shape;
        part.dims[axis] = SHAPE_UNKNOWN;
        memcpy(attrs, node->attrs, (size_t)node->n_attrs * sizeof *attrs);
        for (int i = 0; i < node->n_attrs; i++)
            if (!strcmp(attrs[i].name, "shape"))
                attrs[i].value = attr_shape(arena_copy(&c->to->arena, &part, sizeof part));
        attrs[node->n_attrs] =
            (struct attr){WORKER_PART_SHAPE, attr_shape(&node->outputs[0].shape)};
        attrs[node->n_attrs + 1] = (struct attr){WORKER_PART_AXIS, attr_int(axis)};
        spec.n_attrs = node->n_attrs + 2;
        spec.attrs = attrs;
    }
    if (draws) {
        /* All workers draw it, for all rows, as one process would: where that is the same on
         * all. */
        struct attr *attrs = arena_array(&c->to->arena, (size_t)node->n_attrs + 1, sizeof *attrs);
        memcpy(attrs, node->attrs, (size_t)node->n_attrs * sizeof *attrs);
        attrs[node->n_attrs] = (struct attr){DRAWS_ALIKE, attr_bool(true)};
        spec.n_attrs = node->n_attrs + 1;
        spec.attrs = attrs;
    }
    if (output.form != DENSE_CUT && output.form != DENSE_SUM && !draws)
        return graph_add_trusted(c->to, &spec, node->outputs, node->n_outputs);
    return graph_add(c->to, &spec, c->err);
}

static struct edge input_of(struct dense_cutter *c, const struct node *node, int i,
                            const struct dense_rule *rule)
{
    struct edge edge = node->inputs[i];
    if (!edge_exists(edge) || c->copy[edge.node] < 0)
        return EDGE_NONE;
    if (dense_output(c, edge)->is_ref && node_is(graph_node(c->from, edge.node), "Variable") &&
        layout_equal(rule->inputs[i], dense_layout_of(c, edge)))
        return (struct edge){c->copy[edge.node], edge.slot};
    enum dense_form form = dense_layout_of(c, edge).form;
    if (dense_has(c, node->id, DENSE_INITIAL) && rule->inputs[i].form == DENSE_CUT &&
        (form == DENSE_OWN || form == DENSE_SAME))
        return dense_initial(c, graph_node(c->from, node->inputs[0].node), edge);
    return dense_convert(c, node, edge, rule->inputs[i]);
}

/* ---- the graph ---- */

static struct edge named(void *context, struct edge edge)
{
    const struct dense_cutter *c = context;
    return (struct edge){c->copy[edge.node], edge.slot};
}

int dense_copy_names(struct dense_cutter *c, struct edge (*name)(void *context, struct edge edge),
                     void *context)
{
    for (size_t i = 0; i < c->open.n; i++) {
        const struct node *node = graph_node(c->from, c->open.items[i]);
        struct node *copy = graph_node(c->to, c->copy[node->id]);
        for (int k = 0; k < node->n_inputs; k++)
            if (!edge_exists(copy->inputs[k]))
                copy->inputs[k] = name(context, node->inputs[k]);
    }
    for (size_t i = 0; i < c->from->entries.n; i++) {
        const struct entry *entry = &c->from->entries.items[i];
        struct edge *edges = arena_array(&c->arena, (size_t)entry->n_edges + 1, sizeof *edges);
        for (int k = 0; k < entry->n_edges; k++)
            edges[k] = name(context, entry->edges[k]);
        graph_add_entry(c->to, entry->name, edges, entry->n_edges);
    }
    for (size_t i = 0; i < c->from->aliases.n; i++)
        if (graph_add_alias(c->to, c->from->aliases.items[i].name,
                            name(context, c->from->aliases.items[i].edge), c->err))
            return c->err->code;
    graph_add_history(c->to, c->from);
    return c->err->code;
}

static int cut(struct dense_cutter *c)
{
    for (size_t i = 0; i < c->from->nodes.n; i++) {
        const struct node *node = graph_node(c->from, c->order[i]);
        struct edge *inputs = arena_array(&c->arena, (size_t)node->n_inputs + 1, sizeof *inputs);
        struct dense_rule rule = {
            .inputs = arena_array(&c->arena, (size_t)node->n_inputs + 1, sizeof *rule.inputs)};
        bool open = false;
        if (dense_rule(c, node, &rule))
            return c->err->code;
        for (int j = 0; j < node->n_inputs; j++) {
            inputs[j] = input_of(c, node, j, &rule);
            open |= !edge_exists(inputs[j]);
            if (c->err->code)
                return c->err->code;
        }
        struct node *copy = add(c, node, inputs, rule.output);
        if (!copy)
            return c->err->code;
        for (int j = 0; j < node->n_controls; j++)
            graph_add_control(c->to, copy, c->copy[node->controls[j]]);
        c->copy[node->id] = copy->id;
        c->layouts[node->id] = rule.output;
        if (open)
            vec_push(&c->open, node->id);
    }
    return dense_copy_names(c, named, c);
}

static int rewrite(const struct graph *from, const struct dense_options *options,
                   int (*how)(struct dense_cutter *), struct graph **to, struct error *err)
{
    size_t n = from->nodes.n;
    struct dense_cutter c = {.from = from, .options = options, .err = err};
    c.order = arena_array(&c.arena, n + 1, sizeof *c.order);
    c.facts = arena_array(&c.arena, n + 1, sizeof *c.facts);
    c.cut = arena_array(&c.arena, n + 1, sizeof *c.cut);
    c.copy = arena_array(&c.arena, n + 1, sizeof *c.copy);
    c.layouts = arena_array(&c.arena, n + 1, sizeof *c.layouts);
    c.rows = arena_array(&c.arena, DENSE_PASSES_MAX, sizeof *c.rows);
    memset(c.rows, -1, DENSE_PASSES_MAX * sizeof *c.rows);
    memset(c.cut, -1, n * sizeof *c.cut);
    memset(c.copy, -1, n * sizeof *c.copy);
    c.to = graph_new(from->registry);
    c.b = (struct build){.graph = c.to, .scope = "", .device = "", .err = err};
    int code = graph_order(from, c.order, err);
    if (!code)
        code = dense_find(&c);
    if (!code)
        code = how(&c);
    if (!code)
        code = graph_check(c.to, err);
    if (code)
        graph_free(c.to);
    *to = code ? NULL : c.to;
    vec_release(&c.converted);
    vec_release(&c.open);
    arena_release(&c.arena);
    return code;
}

int dense_graph(const struct graph *from, const struct dense_options *options, struct graph **to,
                struct error *err)
{
    return rewrite(from, options, cut, to, err);
}

int dense_passes(const struct graph *from, const struct dense_options *options, struct graph **to,
                 struct error *err)
{
    struct dense_options quiet = *options;
    quiet.note = NULL; /* dense_graph says it */
    return rewrite(from, &quiet, dense_unroll, to, err);
}
