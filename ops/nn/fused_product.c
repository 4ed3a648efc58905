/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused ops that plans make from products and convolutions followed by a bias and an activation
 * (exec/plan/fuse.h).
 */
#include "ops/nn/fused_product.h"

#include <string.h>

#include "graph/infer.h"
#include "graph/op_cost.h"
#include "ops/nn/format.h"
#include "ops/nn/window.h"

extern const struct op_def op_MatMul, op_Conv2D;

static int check_bias(struct infer *infer, int input, int axis)
{
    const struct shape *bias = infer_shape(infer, input);
    if (infer_vector(infer, input))
        return infer->err->code;
    if (bias->rank < 0 || infer->out[0].rank < 0)
        return 0;
    int64_t channels = infer->out[0].dims[axis];
    if (channels >= 0 && bias->dims[0] >= 0 && channels != bias->dims[0])
        return infer_fail(infer, "bias must be a vector of %lld channels, not %s",
                          (long long)channels, shape_text(bias));
    return 0;
}

static int check_epilogue(struct infer *infer, int axis)
{
    const struct attr_value *ops = node_attr(infer->node, "epilogue");
    int n = FUSED_PRODUCT_INPUTS;
    for (int i = 0; i < ops->n; i++)
        n += !strcmp(ops->strings[i], "BiasAdd");
    if (n != infer->n_in)
        return infer_fail(infer, "%d biases are added, and %d given", n - FUSED_PRODUCT_INPUTS,
                          infer->n_in - FUSED_PRODUCT_INPUTS);
    for (int i = FUSED_PRODUCT_INPUTS; i < n; i++)
        if (check_bias(infer, i, axis))
            return infer->err->code;
    return 0;
}

static int fused_matmul_shape(struct infer *infer)
{
    return op_MatMul.shape(infer) ? infer->err->code : check_epilogue(infer, 1);
}

static int fused_conv_shape(struct infer *infer)
{
    return op_Conv2D.shape(infer) ? infer->err->code
                                  : check_epilogue(infer, format_channel_axis(infer->node, 4));
}

static void add_epilogue(const struct cost_query *query, struct op_cost *cost)
{
    cost->operations += cost_count(&query->node->outputs[0].shape, query->assume) *
                        node_attr(query->node, "epilogue")->n;
}

static void fused_matmul_cost(const struct cost_query *query, struct op_cost *cost)
{
    op_MatMul.cost(query, cost);
    add_epilogue(query, cost);
}

static void fused_conv_cost(const struct cost_query *query, struct op_cost *cost)
{
    op_Conv2D.cost(query, cost);
    add_epilogue(query, cost);
}

#define EPILOGUE_ATTRS "N: int >= 0, epilogue: list(string) >= 1, T: float32|float64"
#define DETAIL                                                                                     \
    "`epilogue` names ops that follow each other, BiasAdd, which takes the next of `args`, and "   \
    "activations: Relu, Relu6, Elu, Softplus, Tanh, Sigmoid. Only in types that no op of them "    \
    "rounds to."

#define FUSED_PRODUCT(op, ...)                                                                     \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .detail = DETAIL,                                               \
                                   .half = HALF_KEPT,                                              \
                                   .flags = OP_NO_GRADIENT,                                        \
                                   .no_gradient =                                                  \
                                       "it is made of ops that have one when that is there",       \
                                   __VA_ARGS__}

FUSED_PRODUCT(FusedMatMul, .inputs = "a: T, b: T, args: N*T", .outputs = "product: T",
              .attrs = "transpose_a: bool = false, transpose_b: bool = false, " EPILOGUE_ATTRS,
              .doc = "MatMul with biases and activations behind it; made of them for a device.",
              .cost = fused_matmul_cost, .shape = fused_matmul_shape);

FUSED_PRODUCT(
    FusedConv2D, .inputs = "input: T, filter: T, args: N*T", .outputs = "output: T",
    .attrs = "strides: list(int), " WINDOW_PADDING_ATTR ", " FORMAT_ATTR
             ", dilations: list(int) = [1,1,1,1], use_cudnn_on_gpu: bool = true, " EPILOGUE_ATTRS,
    .doc = "Conv2D with biases and activations behind it; made of them for a device.",
    .cost = fused_conv_cost, .shape = fused_conv_shape);
