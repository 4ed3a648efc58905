/* SPDX-License-Identifier: Apache-2.0
 *
 * Cumulative sums and products.
 */
#include "graph/op_cost.h"
#include "ops/lacking.h"
#include "ops/math/gradients.h"

static int scan_shape(struct infer *infer)
{
    int axis;
    infer->out[0] = *infer_shape(infer, 0);
    return infer_axis(infer, 1, infer->out[0].rank, &axis);
}

static struct edge opposite_sum(struct grad *g, struct edge x)
{
    return grad_scan(g, "Cumsum", x, grad_input(g, 1), node_bool(g->node, "exclusive"),
                     !node_bool(g->node, "reverse"));
}

static void cumsum_gradient(struct grad *g)
{
    g->in[0] = opposite_sum(g, g->out[0]);
}

static struct edge scan_along(struct grad *g, const char *op, struct edge x, bool exclusive)
{
    return grad_scan(g, op, x, grad_input(g, 1), exclusive, node_bool(g->node, "reverse"));
}

/* Before a line's first zero: the sum of the products that contain the element, divided by it. At
 * the first zero: the same sum with the zero replaced by 1. After it: 0, as each product contains
 * the zero. */
static void cumprod_gradient(struct grad *g)
{
    struct build *b = &g->b;
    struct edge x = grad_input(g, 0), dy = g->out[0];
    struct edge none = build_scalar(b, INT32, 0), zero = build_scalar_like(b, x, 0);
    struct edge one = build_scalar_like(b, x, 1);
    struct edge is_zero = build_binary(b, "Equal", x, zero);
    struct edge zeros = scan_along(g, "Cumsum", grad_cast(g, is_zero, INT32), false);
    struct edge before = build_binary(b, "Equal", zeros, none);
    struct edge first = build_binary(b, "LogicalAnd", is_zero,
                                     build_binary(b, "Equal", zeros, build_scalar(b, INT32, 1)));
    struct edge others =
        scan_along(g, "Cumprod", grad_select(g, first, one, x), node_bool(g->node, "exclusive"));
    struct edge with = opposite_sum(g, grad_mul(g, grad_output(g, 0), dy));
    struct edge without = opposite_sum(g, grad_mul(g, others, dy));
    g->in[0] = grad_select(g, before, grad_div(g, with, grad_select(g, is_zero, one, x)),
                           grad_select(g, first, without, zero));
}

#define SCAN                                                                                       \
    .inputs = "x: T, axis: Tidx", .outputs = "out: T",                                             \
    .attrs = "exclusive: bool = false, reverse: bool = false, T: real, "                           \
             "Tidx: int32|int64 = int32",                                                          \
    .shape = scan_shape

const struct op_def op_Cumsum = {
    .name = "Cumsum",
    SCAN,
    .doc = "The sums of the elements up to each along an axis.",
    .detail = "With exclusive each element itself is left out; with reverse sums run from the end."
              "\n" NO_COMPLEX,
    .half = HALF_DENIED,
    .cost = cost_elements,
    .gradient = cumsum_gradient,
};

const struct op_def op_Cumprod = {
    .name = "Cumprod",
    SCAN,
    .doc = "The products of the elements up to each along an axis.",
    .detail = "With exclusive each element itself is left out; with reverse products run from the "
              "end. The gradient is right where an element is 0, too, but not that of the "
              "gradient."
              "\n" NO_COMPLEX,
    .half = HALF_DENIED,
    .cost = cost_elements,
    .gradient = cumprod_gradient,
};
