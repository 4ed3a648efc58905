/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic and elementary functions of one tensor, element by element.
 */
#include <math.h>

#include "ops/lacking.h"
#include "ops/math/elementwise_def.h"
#include "ops/math/gradients.h"

#define NO_GRADIENT "its result changes in steps"

#define SIGNED "floating|int8|int16|int32|int64"

#define UNARY(op, of, half, cost, doc, ...)                                                        \
    ELEMENTWISE(op, "x: T", "y: T", "T: " of, half, cost, infer_unchanged, doc, __VA_ARGS__)

static void neg_gradient(struct grad *g)
{
    g->in[0] = grad_neg(g, g->out[0]);
}

static void abs_gradient(struct grad *g)
{
    g->in[0] = grad_mul(g, g->out[0], grad_late(g, "Sign", grad_input(g, 0), g->out[0]));
}

static void square_gradient(struct grad *g)
{
    g->in[0] = grad_mul(g, grad_scale(g, 2, g->out[0]), grad_input(g, 0));
}

static void sign_gradient(struct grad *g)
{
    g->in[0] = build_unary(&g->b, "ZerosLike", grad_input(g, 0));
}

/* A fused gradient, from the result and the incoming gradient. */
static void fused_gradient(struct grad *g)
{
    g->in[0] = grad_fused(g, grad_output(g, 0), g->out[0]);
}

static void exp_gradient(struct grad *g)
{
    g->in[0] = grad_mul(g, g->out[0], grad_output(g, 0));
}

static void log_gradient(struct grad *g)
{
    g->in[0] = grad_div(g, g->out[0], grad_input(g, 0));
}

static void log1p_gradient(struct grad *g)
{
    struct edge x = grad_input(g, 0), one = build_scalar_like(&g->b, x, 1);
    g->in[0] = grad_div(g, g->out[0], build_binary(&g->b, "Add", one, x));
}

static void sin_gradient(struct grad *g)
{
    g->in[0] = grad_mul(g, g->out[0], grad_late(g, "Cos", grad_input(g, 0), g->out[0]));
}

static void cos_gradient(struct grad *g)
{
    struct edge sin = grad_late(g, "Sin", grad_input(g, 0), g->out[0]);
    g->in[0] = grad_neg(g, grad_mul(g, g->out[0], sin));
}

/* 2 / sqrt(pi) * exp(-x^2) */
static void erf_gradient(struct grad *g)
{
    struct edge square = grad_late(g, "Square", grad_input(g, 0), g->out[0]);
    struct edge bell = build_unary(&g->b, "Exp", grad_neg(g, square));
    g->in[0] = grad_mul(g, grad_scale(g, M_2_SQRTPI, g->out[0]), bell);
}

UNARY(Neg, SIGNED, CLEAR, cost_elements, "-x.", .detail = NO_COMPLEX, .flags = OP_INVOLUTION,
      .gradient = neg_gradient);

UNARY(Abs, SIGNED, CLEAR, cost_elements, "The absolute value of x.",
      .detail = "The most negative integer has none and stays as it is.", .flags = OP_IDEMPOTENT,
      .gradient = abs_gradient);

UNARY(Square, "real", DENIED, cost_elements, "x * x.", .detail = NO_COMPLEX,
      .gradient = square_gradient);

UNARY(Sign, SIGNED, CLEAR, cost_elements, "1 where x > 0, -1 where x < 0, else x.",
      .detail = NO_COMPLEX, .flags = OP_IDEMPOTENT, .gradient = sign_gradient);

UNARY(Sqrt, "floating", DENIED, cost_elements, "The square root of x; NaN where x < 0.",
      .detail = NO_COMPLEX, .gradient = fused_gradient);

UNARY(Rsqrt, "floating", DENIED, cost_elements, "One over the square root of x.",
      .detail = NO_COMPLEX, .gradient = fused_gradient);

UNARY(Reciprocal, "floating", DENIED, cost_elements, "1 / x.",
      .detail = "Not of integers, whose reciprocals are none, nor of complex numbers.",
      .gradient = fused_gradient);

UNARY(Floor, "floating", CLEAR, cost_elements, "The largest whole number that is not above x.",
      .flags = OP_NO_GRADIENT | OP_IDEMPOTENT, .no_gradient = NO_GRADIENT);

UNARY(Ceil, "floating", CLEAR, cost_elements, "The smallest whole number that is not below x.",
      .flags = OP_NO_GRADIENT | OP_IDEMPOTENT, .no_gradient = NO_GRADIENT);

UNARY(Round, SIGNED, CLEAR, cost_elements, "The nearest whole number; halves go to the even one.",
      .flags = OP_NO_GRADIENT | OP_IDEMPOTENT, .detail = NO_COMPLEX, .no_gradient = NO_GRADIENT);

UNARY(Exp, "floating", DENIED, cost_functions, "e to the power of x.", .detail = NO_COMPLEX,
      .gradient = exp_gradient);

UNARY(Log, "floating", DENIED, cost_functions, "The natural logarithm of x; NaN where x < 0.",
      .detail = NO_COMPLEX, .gradient = log_gradient);

UNARY(Log1p, "floating", DENIED, cost_functions,
      "The natural logarithm of 1 + x, exact also for small x.", .detail = NO_COMPLEX,
      .gradient = log1p_gradient);

UNARY(Tanh, "floating", INFERRED, cost_functions, "The hyperbolic tangent of x.",
      .detail = NO_COMPLEX, .gradient = fused_gradient);

UNARY(Sigmoid, "floating", INFERRED, cost_functions, "1 / (1 + e^-x).", .detail = NO_COMPLEX,
      .gradient = fused_gradient);

UNARY(Sin, "floating", DENIED, cost_functions, "The sine of x, in radians.", .detail = NO_COMPLEX,
      .gradient = sin_gradient);

UNARY(Cos, "floating", DENIED, cost_functions, "The cosine of x, in radians.", .detail = NO_COMPLEX,
      .gradient = cos_gradient);

UNARY(Erf, "floating", INFERRED, cost_functions,
      "The error function of x, 2 / sqrt(pi) times the integral of e^-t^2 from 0 to x.",
      .gradient = erf_gradient);
