/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementary functions, element by element.
 */
#include <math.h>

#include "graph/op_cost.h"
#include "ops/lacking.h"
#include "ops/math/gradients.h"

#define UNARY .inputs = "x: T", .outputs = "y: T", .attrs = "T: floating", .shape = infer_unchanged

static int exp_gradient(struct grad *g)
{
    g->in[0] = grad_mul(g, g->out[0], grad_output(g, 0));
    return grad_finish(g);
}

static int log_gradient(struct grad *g)
{
    g->in[0] = grad_div(g, g->out[0], grad_input(g, 0));
    return grad_finish(g);
}

static int log1p_gradient(struct grad *g)
{
    struct edge x = grad_input(g, 0), one = build_scalar_like(&g->b, x, 1);
    g->in[0] = grad_div(g, g->out[0], build_binary(&g->b, "Add", one, x));
    return grad_finish(g);
}

static int tanh_gradient(struct grad *g)
{
    g->in[0] = build_binary(&g->b, "TanhGrad", grad_output(g, 0), g->out[0]);
    return grad_finish(g);
}

static int sigmoid_gradient(struct grad *g)
{
    g->in[0] = build_binary(&g->b, "SigmoidGrad", grad_output(g, 0), g->out[0]);
    return grad_finish(g);
}

static int sin_gradient(struct grad *g)
{
    g->in[0] = grad_mul(g, g->out[0], grad_late(g, "Cos", grad_input(g, 0), g->out[0]));
    return grad_finish(g);
}

static int cos_gradient(struct grad *g)
{
    struct edge sin = grad_late(g, "Sin", grad_input(g, 0), g->out[0]);
    g->in[0] = grad_neg(g, grad_mul(g, g->out[0], sin));
    return grad_finish(g);
}

/* 2 / sqrt(pi) * exp(-x^2) */
static int erf_gradient(struct grad *g)
{
    struct edge square = grad_late(g, "Square", grad_input(g, 0), g->out[0]);
    struct edge bell = build_unary(&g->b, "Exp", grad_neg(g, square));
    g->in[0] = grad_mul(g, grad_scale(g, M_2_SQRTPI, g->out[0]), bell);
    return grad_finish(g);
}

const struct op_def op_Exp = {
    .name = "Exp",
    UNARY,
    .doc = "e to the power of x.",
    .detail = NO_COMPLEX,
    .rows = ROWS_ALIKE,
    .half = HALF_DENIED,
    .cost = cost_functions,
    .gradient = exp_gradient,
};

const struct op_def op_Log = {
    .name = "Log",
    UNARY,
    .doc = "The natural logarithm of x; NaN where x < 0.",
    .detail = NO_COMPLEX,
    .rows = ROWS_ALIKE,
    .half = HALF_DENIED,
    .cost = cost_functions,
    .gradient = log_gradient,
};

const struct op_def op_Log1p = {
    .name = "Log1p",
    UNARY,
    .doc = "The natural logarithm of 1 + x, exact also for small x.",
    .detail = NO_COMPLEX,
    .rows = ROWS_ALIKE,
    .half = HALF_DENIED,
    .cost = cost_functions,
    .gradient = log1p_gradient,
};

const struct op_def op_Tanh = {
    .name = "Tanh",
    UNARY,
    .doc = "The hyperbolic tangent of x.",
    .detail = NO_COMPLEX,
    .rows = ROWS_ALIKE,
    .half = HALF_INFERRED,
    .cost = cost_functions,
    .gradient = tanh_gradient,
};

const struct op_def op_Sigmoid = {
    .name = "Sigmoid",
    UNARY,
    .doc = "1 / (1 + e^-x).",
    .detail = NO_COMPLEX,
    .rows = ROWS_ALIKE,
    .half = HALF_INFERRED,
    .cost = cost_functions,
    .gradient = sigmoid_gradient,
};

const struct op_def op_Sin = {
    .name = "Sin",
    UNARY,
    .doc = "The sine of x, in radians.",
    .detail = NO_COMPLEX,
    .rows = ROWS_ALIKE,
    .half = HALF_DENIED,
    .cost = cost_functions,
    .gradient = sin_gradient,
};

const struct op_def op_Cos = {
    .name = "Cos",
    UNARY,
    .doc = "The cosine of x, in radians.",
    .detail = NO_COMPLEX,
    .rows = ROWS_ALIKE,
    .half = HALF_DENIED,
    .cost = cost_functions,
    .gradient = cos_gradient,
};

const struct op_def op_Erf = {
    .name = "Erf",
    UNARY,
    .doc = "The error function of x, 2 / sqrt(pi) times the integral of e^-t^2 from 0 to x.",
    .rows = ROWS_ALIKE,
    .half = HALF_INFERRED,
    .cost = cost_functions,
    .gradient = erf_gradient,
};
