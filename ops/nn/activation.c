/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations and the ops that their gradients are made of.
 */
#include "graph/infer.h"
#include "graph/op.h"
#include "ops/math/elementwise_def.h"
#include "ops/math/gradients.h"

/* Computes from the incoming gradient and the forward output: the input need not be kept. */
static void from_output(struct grad *g)
{
    g->in[0] = grad_fused(g, g->out[0], grad_output(g, 0));
}

static void from_input(struct grad *g)
{
    g->in[0] = grad_fused(g, g->out[0], grad_input(g, 0));
}

/* A mask times the gradient: linear in the gradient, flat in the features. */
static void mask_gradient(struct grad *g)
{
    g->in[0] = build_binary(&g->b, g->node->op->def->name, g->out[0], grad_input(g, 1));
}

/* g (y < 0 ? y + 1 : 1), with y the output of Elu. */
static void elu_grad_gradient(struct grad *g)
{
    struct build *b = &g->b;
    struct edge y = grad_input(g, 1), zero = build_scalar_like(b, y, 0);
    struct edge product = build_binary(b, "Mul", g->out[0], grad_input(g, 0));
    struct edge args[] = {build_binary(b, "Less", y, zero), product,
                          build_unary(b, "ZerosLike", product)};
    g->in[0] = build_binary(b, "EluGrad", g->out[0], y);
    g->in[1] = build_op(b, "Select", args, 3, NULL, 0);
}

/* g s with s = sigmoid(x), and ds/dx = s (1 - s). */
static void softplus_grad_gradient(struct grad *g)
{
    struct build *b = &g->b;
    struct edge x = grad_input(g, 1), s = build_unary(b, "Sigmoid", x);
    struct edge slope =
        build_binary(b, "Mul", s, build_binary(b, "Sub", build_scalar_like(b, x, 1), s));
    g->in[0] = build_binary(b, "SoftplusGrad", g->out[0], x);
    g->in[1] = build_binary(b, "Mul", build_binary(b, "Mul", g->out[0], grad_input(g, 0)), slope);
}

#define ACTIVATION(op, of, half, cost, doc, ...)                                                   \
    ELEMENTWISE(op, "features: T", "activations: T", of, half, cost, infer_unchanged, doc,         \
                __VA_ARGS__)

#define ACTIVATION_GRAD(op, takes, of, half, cost, doc, ...)                                       \
    ELEMENTWISE(op, takes, "backprops: T", of, half, cost, infer_alike, doc, __VA_ARGS__)

ACTIVATION(Relu, "T: real", CLEAR, cost_elements, "The larger of the input and 0.",
           .detail = "A NaN stays a NaN.", .flags = OP_IDEMPOTENT, .gradient = from_output);

ACTIVATION_GRAD(ReluGrad, "gradients: T, features: T", "T: real", CLEAR, cost_elements,
                "The gradient where Relu's input (or its output) is positive, 0 elsewhere.",
                .gradient = mask_gradient);

ACTIVATION(Relu6, "T: real", CLEAR, cost_elements, "The input, limited to the range 0 to 6.",
           .detail = "A NaN stays a NaN.", .flags = OP_IDEMPOTENT, .gradient = from_input);

ACTIVATION_GRAD(Relu6Grad, "gradients: T, features: T", "T: real", CLEAR, cost_elements,
                "The gradient where Relu6's input lies between 0 and 6, 0 elsewhere.",
                .gradient = mask_gradient);

ACTIVATION(Elu, "T: floating", INFERRED, cost_functions,
           "Exponential linear unit: exp(x) - 1 where x is negative, x elsewhere.",
           .gradient = from_output);

ACTIVATION_GRAD(
    EluGrad, "gradients: T, outputs: T", "T: floating", INFERRED, cost_elements,
    "Gradient of Elu from its output y: gradients * (y + 1) where y < 0, else gradients.",
    .gradient = elu_grad_gradient);

ACTIVATION(Softplus, "T: floating", DENIED, cost_functions, "ln(1 + exp(x)), without overflow.",
           .gradient = from_input);

ACTIVATION_GRAD(SoftplusGrad, "gradients: T, features: T", "T: floating", DENIED, cost_functions,
                "Gradient of Softplus from its input: gradients / (1 + exp(-x)).",
                .gradient = softplus_grad_gradient);
