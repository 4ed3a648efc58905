/* SPDX-License-Identifier: Apache-2.0
 *
 * Small words for gradient functions, so that they read like their formulas.
 */
#ifndef TF_OPS_MATH_GRADIENTS_H
#define TF_OPS_MATH_GRADIENTS_H

#include "graph/infer.h"
#include "pass/gradient/grad.h"

static inline struct edge grad_neg(struct grad *g, struct edge x)
{
    return build_unary(&g->b, "Neg", x);
}

static inline struct edge grad_mul(struct grad *g, struct edge x, struct edge y)
{
    return build_binary(&g->b, "Mul", x, y);
}

static inline struct edge grad_div(struct grad *g, struct edge x, struct edge y)
{
    return build_binary(&g->b, "Div", x, y);
}

/* factor * x */
static inline struct edge grad_scale(struct grad *g, double factor, struct edge x)
{
    return grad_mul(g, build_scalar_like(&g->b, x, factor), x);
}

/* Select(condition, x, y) */
static inline struct edge grad_select(struct grad *g, struct edge condition, struct edge x,
                                      struct edge y)
{
    const struct edge inputs[] = {condition, x, y};
    return build_op(&g->b, "Select", inputs, 3, NULL, 0);
}

/* A helper that needs only forward values is made to wait for what flows back: computed at once,
 * its result would be held in memory for the whole forward pass. */
static inline struct edge grad_late(struct grad *g, const char *op, struct edge x,
                                    struct edge after)
{
    const int *controls = g->b.controls;
    int n_controls = g->b.n_controls;
    g->b.controls = &after.node;
    g->b.n_controls = 1;
    struct edge result = build_unary(&g->b, op, x);
    g->b.controls = controls;
    g->b.n_controls = n_controls;
    return result;
}

#endif
