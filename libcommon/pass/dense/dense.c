/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/dense/dense.h"

#include <string.h>

#include "pass/dense/dense_private.h"

/* ---- nodes ---- */

/* A node whose shapes are found anew; or whose values all workers draw, for all rows, as one
 * process would, on a device where they are the same for all. */
static int add_changed(struct dense_cutter *c, const struct node *node, const struct edge *inputs,
                       bool draws)
{
    const struct attr alike = {DRAWS_ALIKE, attr_bool(true)};
    struct rewrite_copy copy = {.node = node, .inputs = inputs, .n_inputs = node->n_inputs};
    struct shape part = node->outputs[0].shape;
    int axis = c->cut[node->id];
    const struct attr part_attrs[] = {{"shape", attr_shape(&part)},
                                      {WORKER_PART_SHAPE, attr_shape(&node->outputs[0].shape)},
                                      {WORKER_PART_AXIS, attr_int(axis)}};
    if (draws) {
        copy.device = "/device:CPU:0";
        copy.more = &alike;
        copy.n_more = 1;
    } else if (node_is(node, "Variable")) {
        part.dims[axis] = SHAPE_UNKNOWN; /* as long as it comes out */
        copy.more = part_attrs;
        copy.n_more = 3;
    }
    struct edge made = rewrite_add_copy(&c->r, NULL, &copy, c->err);
    if (edge_exists(made))
        rewrite_stand_in(&c->r, node, made.node);
    return c->err->code;
}

static struct edge input_of(struct dense_cutter *c, const struct node *node, int i,
                            const struct dense_rule *rule)
{
    struct edge edge = node->inputs[i];
    if (!edge_exists(edge) || !c->r.after[edge.node])
        return EDGE_NONE;
    if (dense_output(c, edge)->is_ref && node_is(graph_node(c->from, edge.node), "Variable") &&
        layout_equal(rule->inputs[i], dense_layout_of(c, edge)))
        return rewrite_edge(&c->r, edge);
    enum dense_form form = dense_layout_of(c, edge).form;
    if (dense_has(c, node->id, DENSE_INITIAL) && rule->inputs[i].form == DENSE_CUT &&
        (form == DENSE_OWN || form == DENSE_SAME))
        return dense_initial(c, graph_node(c->from, node->inputs[0].node), edge);
    return dense_convert(c, node, edge, rule->inputs[i]);
}

/* ---- the graph ---- */

static int cut(struct dense_cutter *c)
{
    graph_each_ordered(node, c->from, c->order) {
        struct node view = rewrite_view(&c->r, node);
        struct dense_rule rule = {
            .inputs = arena_array(&c->arena, (size_t)node->n_inputs + 1, sizeof *rule.inputs)};
        if (dense_rule(c, node, &rule))
            return c->err->code;
        for (int j = 0; j < node->n_inputs; j++) {
            view.inputs[j] = input_of(c, node, j, &rule);
            if (c->err->code)
                return c->err->code;
        }
        bool draws = node_has(node, OP_RANDOM) && rule.output.form != DENSE_OWN;
        if (rule.output.form == DENSE_CUT || rule.output.form == DENSE_SUM || draws) {
            if (add_changed(c, node, view.inputs, draws))
                return c->err->code;
        } else {
            rewrite_add(&c->r, node, &view);
        }
        c->layouts[node->id] = rule.output;
    }
    return 0;
}

static int rewrite(const struct graph *from, const struct dense_options *options,
                   int (*how)(struct dense_cutter *), struct graph **to, struct error *err)
{
    static const struct pass_options none = {0};
    size_t n = from->nodes.n;
    struct dense_cutter c = {.from = from, .options = options, .err = err};
    *to = NULL;
    if (rewrite_open(&c.r, from, &none, err))
        return err->code;
    c.facts = arena_array(&c.arena, n + 1, sizeof *c.facts);
    c.cut = arena_array(&c.arena, n + 1, sizeof *c.cut);
    c.layouts = arena_array(&c.arena, n + 1, sizeof *c.layouts);
    c.rows = arena_array(&c.arena, DENSE_PASSES_MAX, sizeof *c.rows);
    memset(c.rows, -1, DENSE_PASSES_MAX * sizeof *c.rows);
    memset(c.cut, -1, n * sizeof *c.cut);
    c.order = c.r.order;
    c.to = c.r.to;
    c.b = (struct build){.graph = c.to, .scope = "", .device = "", .err = err};
    int code = dense_find(&c);
    if (!code)
        code = how(&c);
    c.r.n_changes = 1;
    code = rewrite_finish(&c.r, code, to, err);
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
