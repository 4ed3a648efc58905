/* SPDX-License-Identifier: Apache-2.0
 *
 * In which form a node of the source computes its result, and of what.
 */
#include <string.h>

#include "graph/access_nodes.h"
#include "graph/infer.h"
#include "pass/dense/dense_private.h"
#include "pass/part/part.h"

/* The layout of a whole value: it depends on whether it has rows. */
static struct dense_layout whole_form(const struct dense_cutter *c, struct edge edge)
{
    bool rows = dense_is_rows(c, edge);
    return (struct dense_layout){rows ? DENSE_ALL : DENSE_SAME, 0};
}

/* Whether, of the workers' together, it is given rows of what is behind the last layer, which each
 * worker has its own of for the loss: it is where errors come from, and these are of own rows. */
static bool is_of_results(const struct dense_cutter *c, const struct node *node)
{
    bool is = false;
    for (int i = 0; i < node->n_inputs; i++) {
        struct edge edge = node->inputs[i];
        if (!edge_exists(edge) || !c->r.after[edge.node])
            return false;
        enum dense_form form = dense_layout_of(c, edge).form;
        if (form == DENSE_OWN || form == DENSE_SAME || !dense_is_rows(c, edge))
            continue;
        if (dense_has(c, edge.node, DENSE_GRADIENT | DENSE_BEFORE))
            return false;
        is = true;
    }
    return is;
}

/* Returns whether a value is the workers' together, between layers or between their gradients. Once
 * its inputs have layouts. */
static bool is_inner(const struct dense_cutter *c, const struct node *node)
{
    bool between =
        dense_has(c, node->id, DENSE_BEFORE) && dense_has(c, node->id, DENSE_BEHIND | DENSE_LAYER);
    bool back = dense_has(c, node->id, DENSE_GRADIENT) && dense_has(c, node->id, DENSE_BACK) &&
                !is_of_results(c, node);
    return between || back;
}

/* ---- rules of kinds of ops ----
 *
 * What workers can compute of parts. Of a product of two matrices a part of one of the two axes of
 * the result, from that part of an operand; or a term, from parts of both along the axis that is
 * summed over. Each is false for an op of another kind, or if it has no form for it. */

static const struct dense_layout ALL = {DENSE_ALL, 0};

static struct dense_layout cut_along(int axis)
{
    return (struct dense_layout){DENSE_CUT, axis};
}

static bool is_cut(struct dense_layout layout)
{
    return layout.form == DENSE_CUT;
}

/* A variable of which each worker has a part, or, -1, all, and what is like it. */
static struct dense_layout at_rest(int axis)
{
    return axis < 0 ? (struct dense_layout){DENSE_SAME, 0} : cut_along(axis);
}

static const struct shape *input_shape(const struct dense_cutter *c, const struct node *node, int i)
{
    return &dense_output(c, node->inputs[i])->shape;
}

static bool rule_of_product(const struct dense_cutter *c, const struct node *node,
                            struct dense_rule *rule)
{
    struct op_product product;
    struct dense_layout *in = rule->inputs;
    bool sums[2], follows = is_inner(c, node); /* or has a part of a variable */
    if (!node->op->def->product)
        return false;
    for (int i = 0; i < 2; i++)
        follows |=
            is_cut(dense_layout_of(c, node->inputs[i])) && !dense_is_rows(c, node->inputs[i]);
    if (!follows)
        return false;
    node->op->def->product(node, &product);
    for (int i = 0; i < 2; i++) {
        in[i] = dense_layout_of(c, node->inputs[i]);
        in[i] = is_cut(in[i]) ? in[i] : ALL;
        sums[i] = is_cut(in[i]) && in[i].axis == product.summed[i];
    }
    if (is_cut(in[0]) && is_cut(in[1]) && !(sums[0] && sums[1])) {
        int other = sums[0] ? 0 : 1; /* the cut axis of the first one is one of the result */
        in[other] = ALL;
        sums[other] = false;
    }
    for (int i = 0; i < 2; i++)
        if (sums[!i])
            in[i] = cut_along(product.summed[i]);
    rule->output = sums[0] || sums[1]               ? (struct dense_layout){DENSE_SUM, 0}
                   : is_cut(in[0]) || is_cut(in[1]) ? cut_along(is_cut(in[0]) ? 0 : 1)
                                                    : whole_form(c, (struct edge){node->id, 0});
    return true;
}

/* ---- element by element ---- */

/* The axis of an input that is, from the end, axis `axis` of the result; -1: it has none, or one
 * element along it. */
static int axis_of(const struct shape *in, const struct shape *out, int axis)
{
    int own = axis - (out->rank - in->rank);
    return own >= 0 && in->dims[own] == out->dims[axis] && in->dims[own] != SHAPE_UNKNOWN ? own
                                                                                          : -1;
}

/* The axis along which the result is cut: as the first input that is cut; -1: it is whole. Of terms
 * of rows each worker gets the sums of some columns. */
static int find_axis(const struct dense_cutter *c, const struct node *node)
{
    const struct shape *out = &node->outputs[0].shape;
    bool sums = false;
    for (int i = 0; i < node->n_inputs; i++) {
        struct dense_layout layout = dense_layout_of(c, node->inputs[i]);
        const struct shape *in = input_shape(c, node, i);
        int axis = layout.axis + out->rank - in->rank;
        if (is_cut(layout))
            return axis >= 0 && axis_of(in, out, axis) >= 0 ? axis : -1;
        sums |= layout.form == DENSE_SUM && dense_is_rows(c, node->inputs[i]);
    }
    bool can = sums && out->rank > 1 && out->dims[out->rank - 1] != SHAPE_UNKNOWN;
    return can ? out->rank - 1 : -1;
}

static bool takes(const struct dense_cutter *c, const struct node *node, enum dense_form form,
                  bool rows)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (dense_layout_of(c, node->inputs[i]).form == form &&
            (!rows || dense_is_rows(c, node->inputs[i])))
            return true;
    return false;
}

static bool rule_of_alike(const struct dense_cutter *c, const struct node *node,
                          struct dense_rule *rule)
{
    bool rows = takes(c, node, DENSE_CUT, true) || takes(c, node, DENSE_SUM, true) ||
                takes(c, node, DENSE_ALL, true);
    if ((node_rows(node) != ROWS_ALIKE && !node_has(node, OP_CHECKS) &&
         !node_has(node, OP_PASSES) &&
         !(node->op->def->channels == CHANNELS_ADD && node->outputs[0].shape.rank == 2)) ||
        node->n_outputs != 1 || (!is_inner(c, node) && (rows || !takes(c, node, DENSE_CUT, false))))
        return false;
    const struct shape *out = &node->outputs[0].shape;
    int axis = find_axis(c, node);
    for (int i = 0; i < node->n_inputs; i++) {
        int own = axis < 0 ? -1 : axis_of(input_shape(c, node, i), out, axis);
        rule->inputs[i] = own < 0 ? ALL : cut_along(own);
    }
    rule->output = axis < 0 ? whole_form(c, (struct edge){node->id, 0}) : cut_along(axis);
    return true;
}

/* ---- sums ---- */

/* Finds which axes are summed over, a bit for each. False: nobody knows. */
static bool summed_axes(const struct dense_cutter *c, const struct node *node, unsigned *axes)
{
    const struct shape *shape = input_shape(c, node, 0);
    *axes = (1U << shape->rank) - 1;
    if (node->op->def->channels == CHANNELS_SUM) {
        *axes = 1;
        return shape->rank == 2;
    }
    if (node->op->def->reduction != REDUCTION_SUM || node->n_inputs < 2)
        return node->op->def->reduction == REDUCTION_SUM;
    return graph_constant_axes(c->from, node->inputs[1], shape->rank, axes);
}

static bool rule_of_sums(const struct dense_cutter *c, const struct node *node,
                         struct dense_rule *rule)
{
    unsigned axes;
    struct dense_layout in = node->n_inputs ? dense_layout_of(c, node->inputs[0]) : ALL;
    if (!node->n_inputs || !is_cut(in) || !summed_axes(c, node, &axes) ||
        (dense_is_rows(c, node->inputs[0]) && !is_inner(c, node)))
        return false;
    bool keeps = node_attr(node, "keep_dims") && node_bool(node, "keep_dims");
    int axis = keeps ? in.axis : axis_without(axes, in.axis);
    for (int i = 1; i < node->n_inputs; i++)
        rule->inputs[i] = dense_layout_of(c, node->inputs[i]);
    rule->inputs[0] = in;
    rule->output = axes & 1U << in.axis ? (struct dense_layout){DENSE_SUM, 0} : cut_along(axis);
    return true;
}

/* ---- shapes ---- */

/* The shape of the whole of which a worker has a part. */
static bool rule_of_shape(const struct dense_cutter *c, const struct node *node,
                          struct dense_rule *rule)
{
    if (!node_has(node, OP_SHAPE_ONLY) || node->n_inputs != 1 || node->outputs[0].shape.rank != 1 ||
        node->outputs[0].shape.dims[0] != input_shape(c, node, 0)->rank ||
        !is_inner(c, graph_node(c->from, node->inputs[0].node)))
        return false;
    struct dense_layout in = dense_layout_of(c, node->inputs[0]);
    rule->inputs[0] = is_cut(in) ? (struct dense_layout){DENSE_SUM, 0} : in;
    rule->output = ALL;
    return true;
}

/* ---- any node ---- */

/* The inputs that a node is given. */
struct dense_inputs {
    bool own, dense, rows; /* each worker's own; the workers' together, and that of rows */
};

static void take_as_is(const struct dense_cutter *c, const struct node *node,
                       struct dense_rule *rule)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (edge_exists(node->inputs[i]))
            rule->inputs[i] = dense_layout_of(c, node->inputs[i]);
}

/* ---- variables and what changes them ---- */

static int rule_of_writer(struct dense_cutter *c, const struct node *node, int reference,
                          struct dense_rule *rule)
{
    struct dense_layout whole = dense_layout_of(c, node->inputs[reference]);
    const struct shape *shape = &dense_output(c, node->inputs[reference])->shape;
    take_as_is(c, node, rule);
    rule->output = node_rows(node) == ROWS_ASK ? (struct dense_layout){DENSE_SAME, 0} : whole;
    if (whole.form == DENSE_CUT && node_rows(node) != ROWS_UPDATE && node_rows(node) != ROWS_ASK)
        return dense_refuse(c, node, "it needs a variable whole, of which each worker has a part");
    for (int i = 0; i < node->n_inputs; i++) {
        enum dense_form form = rule->inputs[i].form;
        const struct shape *own = &dense_output(c, node->inputs[i])->shape;
        if (node_takes_ref(node, i) && !layout_equal(rule->inputs[i], whole))
            return dense_refuse(c, node, "it has variables of which only some are cut");
        if (node_takes_ref(node, i))
            continue;
        if (whole.form == DENSE_CUT && own->rank && shape_compatible(own, shape))
            rule->inputs[i] = whole;
        else if (whole.form == DENSE_CUT && own->rank)
            return dense_refuse(c, node, "it changes a part by what has another shape");
        else if (form != DENSE_OWN)
            rule->inputs[i] = (struct dense_layout){DENSE_SAME, 0};
    }
    return 0;
}

/* ---- others ---- */

static int rule_of_others(struct dense_cutter *c, const struct node *node,
                          struct dense_inputs given, struct dense_rule *rule)
{
    bool inner = is_inner(c, node);
    bool own = !inner && (given.own || given.rows);
    if (!own && node_has(node, OP_CONTROL_FLOW))
        return dense_refuse(c, node,
                            "control flow between dense layers cannot be cut over workers");
    if (!own && node_has(node, OP_STATEFUL) && !node_has(node, OP_RANDOM))
        return dense_refuse(c, node,
                            "it has a state, and would be given what workers have parts of");
    for (int i = 0; i < node->n_inputs; i++)
        rule->inputs[i] = (struct dense_layout){own ? DENSE_OWN : DENSE_ALL, 0};
    rule->output = own               ? (struct dense_layout){DENSE_OWN, 0}
                   : node->n_outputs ? whole_form(c, (struct edge){node->id, 0})
                                     : (struct dense_layout){DENSE_SAME, 0};
    return 0;
}

int dense_rule(struct dense_cutter *c, const struct node *node, struct dense_rule *rule)
{
    struct dense_inputs given = {false, false, false};
    for (int i = 0; i < node->n_inputs; i++) {
        if (!edge_exists(node->inputs[i]) || !c->r.after[node->inputs[i].node]) {
            given.own = true; /* comes back in a loop */
            continue;
        }
        enum dense_form form = dense_layout_of(c, node->inputs[i]).form;
        bool shared = form != DENSE_OWN && form != DENSE_SAME;
        given.own |= form == DENSE_OWN;
        given.dense |= shared;
        given.rows |= shared && dense_is_rows(c, node->inputs[i]);
    }
    /* The input that is a variable which the node changes, or asks about. */
    int reference = -1;
    for (int i = 0; i < node->n_inputs && reference < 0; i++)
        if (edge_exists(node->inputs[i]) && node_takes_ref(node, i) &&
            dense_output(c, node->inputs[i])->is_ref)
            reference = i;
    if (node_is(node, "Variable")) {
        rule->output = at_rest(c->cut[node->id]);
    } else if (node_attr(node, "_gradient")) {
        /* The gradient of a variable that is not cut is reduced, and then the same on all
         * workers. */
        int axis = dense_axis_of_gradient(c, node);
        struct dense_layout in = dense_layout_of(c, node->inputs[0]);
        rule->output = at_rest(axis);
        rule->inputs[0] = axis < 0 && in.form == DENSE_OWN ? in : rule->output;
    } else if (reference >= 0 && node_rows(node) != ROWS_ALIKE)
        rule_of_writer(c, node, reference, rule);
    else if (!given.dense) {
        /* Nothing that it is made of is shared by the workers. */
        bool own = given.own || node_has(node, OP_FED | OP_SOURCE | OP_STATEFUL | OP_RANDOM) ||
                   node_makes_resource(node);
        if (node_has(node, OP_RANDOM) && !given.own && dense_has(c, node->id, DENSE_BEFORE))
            own = false; /* the same noise for all rows */
        take_as_is(c, node, rule);
        rule->output = (struct dense_layout){own ? DENSE_OWN : DENSE_SAME, 0};
    } else if (!rule_of_product(c, node, rule) && !rule_of_alike(c, node, rule) &&
               !rule_of_sums(c, node, rule) && !rule_of_shape(c, node, rule))
        rule_of_others(c, node, given, rule);
    if (c->err->code)
        return c->err->code;
    /* Only the first dimension is of rows. */
    bool dense = rule->output.form != DENSE_OWN && is_inner(c, node);
    for (int i = 0; dense && i < node->n_outputs; i++)
        for (int k = 1; k < node->outputs[i].shape.rank; k++)
            if (node->outputs[i].shape.dims[k] == SHAPE_UNKNOWN)
                return dense_refuse(c, node,
                                    "of what is between dense layers only the first dimension, "
                                    "that of rows, may be open");
    return c->err->code;
}
