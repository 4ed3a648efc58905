/* SPDX-License-Identifier: Apache-2.0
 *
 * Small helpers for gradient functions, so that they read like their formulas.
 */
#ifndef TF_OPS_MATH_GRADIENTS_H
#define TF_OPS_MATH_GRADIENTS_H

#include <stdio.h>

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

/* Casts x to `type`; x itself if it has that type. */
static inline struct edge grad_cast(struct grad *g, struct edge x, enum dtype type)
{
    return build_cast(&g->b, x, type);
}

/* Returns the type of counts for values of x's type: 16 bits could not represent them. */
static inline enum dtype grad_count_type(struct grad *g, struct edge x)
{
    enum dtype type = g->b.err->code ? FLOAT32 : build_type(&g->b, x);
    return dtype_bytes(type) < 4 ? FLOAT32 : type;
}

/* Op(x, count), "Mul" or "Div", computed in the type of counts; the result has x's type. */
static inline struct edge grad_by_count(struct grad *g, const char *op, struct edge x,
                                        struct edge count)
{
    enum dtype type = grad_count_type(g, x);
    struct edge wide = build_binary(&g->b, op, grad_cast(g, x, type), grad_cast(g, count, type));
    return g->b.err->code ? EDGE_NONE : grad_cast(g, wide, build_type(&g->b, x));
}

/* factor * x */
static inline struct edge grad_scale(struct grad *g, double factor, struct edge x)
{
    return grad_mul(g, build_scalar_like(&g->b, x, factor), x);
}

/* Makes op NAMEGrad of x and y, NAME being the node's op. */
static inline struct edge grad_fused(struct grad *g, struct edge x, struct edge y)
{
    char name[64];
    snprintf(name, sizeof name, "%sGrad", g->node->op->def->name);
    return build_binary(&g->b, name, x, y);
}

/* Select(condition, x, y) */
static inline struct edge grad_select(struct grad *g, struct edge condition, struct edge x,
                                      struct edge y)
{
    const struct edge inputs[] = {condition, x, y};
    return build_op(&g->b, "Select", inputs, 3, NULL, 0);
}

/* "Cumsum" or "Cumprod" of x along an axis */
static inline struct edge grad_scan(struct grad *g, const char *op, struct edge x, struct edge axis,
                                    bool exclusive, bool reverse)
{
    const struct attr attrs[] = {{"exclusive", attr_bool(exclusive)},
                                 {"reverse", attr_bool(reverse)}};
    const struct edge inputs[] = {x, axis};
    return build_op(&g->b, op, inputs, 2, attrs, 2);
}

/* Makes a helper that needs only forward values wait for the incoming gradient: computed early, its
 * result would occupy memory for the whole forward pass. */
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
