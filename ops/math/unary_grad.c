/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of unary ops that are computed in one op from the result y and the incoming gradient
 * dy. Below, d is the incoming gradient of the gradient op itself.
 */
#include "ops/lacking.h"
#include "ops/math/elementwise_def.h"
#include "ops/math/gradients.h"

#define FUSED(op, half, doc, ...)                                                                  \
    ELEMENTWISE(op, "y: T, dy: T", "z: T", "T: floating", half, cost_elements, infer_alike, doc,   \
                .detail = NO_COMPLEX, __VA_ARGS__)

/* z = dy (1 - y^2) */
static void tanh_grad_gradient(struct grad *g)
{
    struct edge y = grad_input(g, 0), dy = grad_input(g, 1), d = g->out[0];
    g->in[0] = grad_mul(g, grad_mul(g, grad_scale(g, -2, d), dy), y);
    g->in[1] = build_binary(&g->b, "TanhGrad", y, d);
}

/* z = dy y (1 - y) */
static void sigmoid_grad_gradient(struct grad *g)
{
    struct edge y = grad_input(g, 0), dy = grad_input(g, 1), d = g->out[0];
    struct edge both = grad_mul(g, d, dy);
    g->in[0] = build_binary(&g->b, "Sub", both, grad_mul(g, grad_scale(g, 2, both), y));
    g->in[1] = build_binary(&g->b, "SigmoidGrad", y, d);
}

/* z = dy / (2 y) */
static void sqrt_grad_gradient(struct grad *g)
{
    struct edge quotient = grad_div(g, g->out[0], grad_input(g, 0));
    g->in[0] = grad_mul(g, grad_neg(g, quotient), grad_output(g, 0));
    g->in[1] = grad_scale(g, 0.5, quotient);
}

/* z = -dy y^3 / 2 */
static void rsqrt_grad_gradient(struct grad *g)
{
    struct edge y = grad_input(g, 0), dy = grad_input(g, 1), d = g->out[0];
    struct edge square = grad_late(g, "Square", y, d);
    g->in[0] = grad_mul(g, grad_mul(g, grad_scale(g, -1.5, d), dy), square);
    g->in[1] = build_binary(&g->b, "RsqrtGrad", y, d);
}

/* z = -dy y^2 */
static void reciprocal_grad_gradient(struct grad *g)
{
    struct edge y = grad_input(g, 0), dy = grad_input(g, 1), d = g->out[0];
    g->in[0] = grad_mul(g, grad_mul(g, grad_scale(g, -2, d), dy), y);
    g->in[1] = build_binary(&g->b, "ReciprocalGrad", y, d);
}

FUSED(TanhGrad, INFERRED, "The gradient of Tanh, dy * (1 - y * y), where y is its result.",
      .gradient = tanh_grad_gradient);

FUSED(SigmoidGrad, INFERRED, "The gradient of Sigmoid, dy * y * (1 - y), where y is its result.",
      .gradient = sigmoid_grad_gradient);

FUSED(SqrtGrad, DENIED, "The gradient of Sqrt, dy / (2 * y), where y is its result.",
      .gradient = sqrt_grad_gradient);

FUSED(RsqrtGrad, DENIED, "The gradient of Rsqrt, -dy * y^3 / 2, where y is its result.",
      .gradient = rsqrt_grad_gradient);

FUSED(ReciprocalGrad, DENIED, "The gradient of Reciprocal, -dy * y * y, where y is its result.",
      .gradient = reciprocal_grad_gradient);
