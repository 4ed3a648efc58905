/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of one tensor, element by element.
 */
#include "graph/op_cost.h"
#include "ops/lacking.h"
#include "ops/math/gradients.h"

#define NO_GRADIENT "its result changes in steps"

#define SIGNED "floating|int8|int16|int32|int64"

#define UNARY(types)                                                                               \
    .inputs = "x: T", .outputs = "y: T", .attrs = "T: " types, .shape = infer_unchanged

static int neg_gradient(struct grad *g)
{
    g->in[0] = grad_neg(g, g->out[0]);
    return grad_finish(g);
}

static int abs_gradient(struct grad *g)
{
    g->in[0] = grad_mul(g, g->out[0], grad_late(g, "Sign", grad_input(g, 0), g->out[0]));
    return grad_finish(g);
}

static int square_gradient(struct grad *g)
{
    g->in[0] = grad_mul(g, grad_scale(g, 2, g->out[0]), grad_input(g, 0));
    return grad_finish(g);
}

static int sign_gradient(struct grad *g)
{
    g->in[0] = build_unary(&g->b, "ZerosLike", grad_input(g, 0));
    return grad_finish(g);
}

/* Fused: from the result and what flows back. */
static int sqrt_gradient(struct grad *g)
{
    g->in[0] = build_binary(&g->b, "SqrtGrad", grad_output(g, 0), g->out[0]);
    return grad_finish(g);
}

static int rsqrt_gradient(struct grad *g)
{
    g->in[0] = build_binary(&g->b, "RsqrtGrad", grad_output(g, 0), g->out[0]);
    return grad_finish(g);
}

static int reciprocal_gradient(struct grad *g)
{
    g->in[0] = build_binary(&g->b, "ReciprocalGrad", grad_output(g, 0), g->out[0]);
    return grad_finish(g);
}

const struct op_def op_Neg = {
    .name = "Neg",
    UNARY(SIGNED),
    .doc = "-x.",
    .detail = NO_COMPLEX,
    .flags = OP_INVOLUTION,
    .rows = ROWS_ALIKE,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .gradient = neg_gradient,
};

const struct op_def op_Abs = {
    .name = "Abs",
    UNARY(SIGNED),
    .doc = "The absolute value of x.",
    .detail = "The most negative integer has none and stays as it is.",
    .flags = OP_IDEMPOTENT,
    .rows = ROWS_ALIKE,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .gradient = abs_gradient,
};

const struct op_def op_Square = {
    .name = "Square",
    UNARY("real"),
    .doc = "x * x.",
    .detail = NO_COMPLEX,
    .rows = ROWS_ALIKE,
    .half = HALF_DENIED,
    .cost = cost_elements,
    .gradient = square_gradient,
};

const struct op_def op_Sign = {
    .name = "Sign",
    UNARY(SIGNED),
    .doc = "1 where x > 0, -1 where x < 0, else x.",
    .detail = NO_COMPLEX,
    .flags = OP_IDEMPOTENT,
    .rows = ROWS_ALIKE,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .gradient = sign_gradient,
};

const struct op_def op_Sqrt = {
    .name = "Sqrt",
    UNARY("floating"),
    .doc = "The square root of x; NaN where x < 0.",
    .detail = NO_COMPLEX,
    .rows = ROWS_ALIKE,
    .half = HALF_DENIED,
    .cost = cost_elements,
    .gradient = sqrt_gradient,
};

const struct op_def op_Rsqrt = {
    .name = "Rsqrt",
    UNARY("floating"),
    .doc = "One over the square root of x.",
    .detail = NO_COMPLEX,
    .rows = ROWS_ALIKE,
    .half = HALF_DENIED,
    .cost = cost_elements,
    .gradient = rsqrt_gradient,
};

const struct op_def op_Reciprocal = {
    .name = "Reciprocal",
    UNARY("floating"),
    .doc = "1 / x.",
    .detail = "Not of integers, whose reciprocals are none, nor of complex numbers.",
    .rows = ROWS_ALIKE,
    .half = HALF_DENIED,
    .cost = cost_elements,
    .gradient = reciprocal_gradient,
};

const struct op_def op_Floor = {
    .name = "Floor",
    UNARY("floating"),
    .flags = OP_NO_GRADIENT | OP_IDEMPOTENT,
    .doc = "The largest whole number that is not above x.",
    .rows = ROWS_ALIKE,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .no_gradient = NO_GRADIENT,
};

const struct op_def op_Ceil = {
    .name = "Ceil",
    UNARY("floating"),
    .flags = OP_NO_GRADIENT | OP_IDEMPOTENT,
    .doc = "The smallest whole number that is not below x.",
    .rows = ROWS_ALIKE,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .no_gradient = NO_GRADIENT,
};

const struct op_def op_Round = {
    .name = "Round",
    UNARY(SIGNED),
    .flags = OP_NO_GRADIENT | OP_IDEMPOTENT,
    .doc = "The nearest whole number; halves go to the even one.",
    .detail = NO_COMPLEX,
    .rows = ROWS_ALIKE,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .no_gradient = NO_GRADIENT,
};
