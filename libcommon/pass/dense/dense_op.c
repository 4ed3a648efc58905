/* SPDX-License-Identifier: Apache-2.0
 *
 * What workers can compute of parts. Of a product of two matrices a part of one of the two axes of
 * the result, from that part of an operand; or a term, from parts of both along the axis that is
 * summed over.
 */
#include "graph/infer.h"
#include "pass/dense/dense_private.h"

static const struct dense_layout ALL = {DENSE_ALL, 0};

static struct dense_layout cut_along(int axis)
{
    return (struct dense_layout){DENSE_CUT, axis};
}

static bool is_cut(struct dense_layout layout)
{
    return layout.form == DENSE_CUT;
}

static const struct shape *input_shape(const struct dense_cutter *c, const struct node *node, int i)
{
    return &dense_output(c, node->inputs[i])->shape;
}

/* ---- products ---- */

bool dense_rule_product(const struct dense_cutter *c, const struct node *node,
                        struct dense_rule *rule)
{
    struct op_product product;
    struct dense_layout *in = rule->inputs;
    bool sums[2], follows = dense_is_inner(c, node); /* or has a part of a variable */
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
    if (is_cut(in[0]) && is_cut(in[1]) && sums[0] != sums[1])
        in[sums[0] ? 0 : 1] = ALL; /* whose cut axis is one of the result stays so */
    else if (is_cut(in[0]) && is_cut(in[1]) && !sums[0])
        in[1] = ALL;
    sums[0] &= is_cut(in[0]);
    sums[1] &= is_cut(in[1]);
    for (int i = 0; i < 2; i++)
        if (sums[!i])
            in[i] = cut_along(product.summed[i]);
    rule->output = sums[0] || sums[1]               ? (struct dense_layout){DENSE_SUM, 0}
                   : is_cut(in[0]) || is_cut(in[1]) ? cut_along(is_cut(in[0]) ? 0 : 1)
                                                    : dense_whole(c, (struct edge){node->id, 0});
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

bool dense_rule_alike(const struct dense_cutter *c, const struct node *node,
                      struct dense_rule *rule)
{
    bool rows = takes(c, node, DENSE_CUT, true) || takes(c, node, DENSE_SUM, true) ||
                takes(c, node, DENSE_ALL, true);
    if ((node_rows(node) != ROWS_ALIKE && !node_has(node, OP_CHECKS) &&
         !node_has(node, OP_PASSES) &&
         !(node->op->def->channels == CHANNELS_ADD && node->outputs[0].shape.rank == 2)) ||
        node->n_outputs != 1 ||
        (!dense_is_inner(c, node) && (rows || !takes(c, node, DENSE_CUT, false))))
        return false;
    const struct shape *out = &node->outputs[0].shape;
    int axis = find_axis(c, node);
    for (int i = 0; i < node->n_inputs; i++) {
        int own = axis < 0 ? -1 : axis_of(input_shape(c, node, i), out, axis);
        rule->inputs[i] = own < 0 ? ALL : cut_along(own);
    }
    rule->output = axis < 0 ? dense_whole(c, (struct edge){node->id, 0}) : cut_along(axis);
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

bool dense_rule_sums(const struct dense_cutter *c, const struct node *node, struct dense_rule *rule)
{
    unsigned axes;
    struct dense_layout in = node->n_inputs ? dense_layout_of(c, node->inputs[0]) : ALL;
    if (!node->n_inputs || !is_cut(in) || !summed_axes(c, node, &axes) ||
        (dense_is_rows(c, node->inputs[0]) && !dense_is_inner(c, node)))
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
bool dense_rule_shape(const struct dense_cutter *c, const struct node *node,
                      struct dense_rule *rule)
{
    if (!node_has(node, OP_SHAPE_ONLY) || node->n_inputs != 1 || node->outputs[0].shape.rank != 1 ||
        node->outputs[0].shape.dims[0] != input_shape(c, node, 0)->rank ||
        !dense_is_inner(c, graph_node(c->from, node->inputs[0].node)))
        return false;
    struct dense_layout in = dense_layout_of(c, node->inputs[0]);
    rule->inputs[0] = is_cut(in) ? (struct dense_layout){DENSE_SUM, 0} : in;
    rule->output = ALL;
    return true;
}
