/* SPDX-License-Identifier: Apache-2.0
 *
 * Sources of values: constants of the graph, and fed placeholders.
 */
#include "graph/infer.h"
#include "graph/op_cost.h"
#include "pass/gradient/grad.h"

static int const_shape(struct infer *infer)
{
    const struct tensor *value = node_attr(infer->node, "value")->tensor;
    enum dtype type = node_type(infer->node, "dtype");
    if (value->type != type)
        return infer_fail(infer, "value is %s, but dtype is %s", dtype_name(value->type),
                          dtype_name(type));
    infer->out[0] = value->shape;
    return 0;
}

const struct op_def op_Const = {
    .name = "Const",
    .outputs = "output: dtype",
    .attrs = "value: tensor, dtype: any",
    .doc = "A constant tensor, whose value is part of the graph.",
    .flags = OP_NO_GRADIENT,
    .half = HALF_KEPT,
    .cost = cost_nothing,
    .shape = const_shape,
    .no_gradient = "it has no inputs",
};

const struct op_def op_Placeholder = {
    .name = "Placeholder",
    .outputs = "output: dtype",
    .attrs = "dtype: any, shape: shape = ?",
    .doc = "A place for a value that each step is fed.",
    .detail = "Running a step that needs it without feeding it is an error.",
    .flags = OP_SOURCE | OP_FED | OP_NO_GRADIENT,
    .half = HALF_KEPT,
    .cost = cost_nothing,
    .shape = infer_output_declared,
    .no_gradient = "it has no inputs",
};

static int default_shape(struct infer *infer)
{
    const struct shape *shape = node_attr(infer->node, "shape")->shape;
    if (!shape_compatible(infer_shape(infer, 0), shape))
        return infer_fail(infer, "the default has shape %s, which is not %s",
                          shape_text(infer_shape(infer, 0)), shape_text(shape));
    infer->out[0] = *shape;
    return 0;
}

static void default_gradient(struct grad *g)
{
    g->in[0] = g->out[0];
}

const struct op_def op_PlaceholderWithDefault = {
    .name = "PlaceholderWithDefault",
    .inputs = "input: dtype",
    .outputs = "output: dtype",
    .attrs = "dtype: any, shape: shape = ?",
    .doc = "Its input, unless a step is fed another value of the given shape.",
    .flags = OP_FED,
    .half = HALF_KEPT,
    .cost = cost_view,
    .shape = default_shape,
    .gradient = default_gradient,
};
