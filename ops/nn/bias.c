/* SPDX-License-Identifier: Apache-2.0
 *
 * Adding a value per channel, and its gradient.
 */
#include "graph/infer.h"
#include "graph/op.h"
#include "ops/lacking.h"
#include "ops/nn/format.h"
#include "pass/gradient/grad.h"

static int bias_shape(struct infer *infer)
{
    const struct shape *value = infer_shape(infer, 0), *bias = infer_shape(infer, 1);
    if (infer_rank_at_least(infer, 0, format_is_nchw(infer->node) ? 3 : 2) ||
        infer_vector(infer, 1))
        return infer->err->code;
    infer->out[0] = *value;
    if (value->rank < 0 || bias->rank < 0)
        return 0;
    int64_t *channels = &infer->out[0].dims[format_channel_axis(infer->node, value->rank)];
    if (*channels >= 0 && bias->dims[0] >= 0 && *channels != bias->dims[0])
        return infer_fail(infer, "value has %lld channels, bias %lld", (long long)*channels,
                          (long long)bias->dims[0]);
    if (*channels < 0)
        *channels = bias->dims[0];
    return 0;
}

static int bias_grad_shape(struct infer *infer)
{
    const struct shape *value = infer_shape(infer, 0);
    if (infer_rank_at_least(infer, 0, format_is_nchw(infer->node) ? 3 : 2))
        return infer->err->code;
    infer->out[0] = shape_vector(SHAPE_UNKNOWN);
    if (value->rank >= 0)
        infer->out[0].dims[0] = value->dims[format_channel_axis(infer->node, value->rank)];
    return 0;
}

static void bias_gradient(struct grad *g)
{
    g->in[0] = g->out[0];
    g->in[1] = grad_op(g, "BiasAddGrad", g->out, 1);
}

/* A sum's gradient goes to all that was summed. */
static void bias_grad_gradient(struct grad *g)
{
    struct edge inputs[] = {build_unary(&g->b, "ZerosLike", grad_input(g, 0)), g->out[0]};
    g->in[0] = grad_op(g, "BiasAdd", inputs, 2);
}

const struct op_def op_BiasAdd = {
    .name = "BiasAdd",
    .inputs = "value: T, bias: T",
    .outputs = "output: T",
    .attrs = FORMAT_ATTR ", T: real",
    .doc = "Adds a value per channel.",
    .detail = "Channels are the last axis, with data_format NCHW axis 1."
              "\n" NO_COMPLEX,
    .half = HALF_INFERRED,
    .shape = bias_shape,
    .rule = "output[...,c]@ = value[...,c]@ bias[c]",
    .gradient = bias_gradient,
};

const struct op_def op_BiasAddGrad = {
    .name = "BiasAddGrad",
    .inputs = "out_backprop: T",
    .outputs = "output: T",
    .attrs = FORMAT_ATTR ", T: real",
    .doc = "Sum over all axes but that of the channels: the gradient of BiasAdd's bias.",
    .detail = NO_COMPLEX,
    .half = HALF_CLEAR,
    .shape = bias_grad_shape,
    .rule = "output[c] += out_backprop[...,c]@",
    .gradient = bias_grad_gradient,
};
