/* SPDX-License-Identifier: Apache-2.0
 *
 * Cumulative sums and products.
 */
#include "graph/op_cost.h"
#include "ops/lacking.h"
#include "ops/math/gradients.h"

static int scan_shape(struct infer *infer)
{
    const struct shape *x = infer_shape(infer, 0);
    int64_t value;
    int axis;
    if (infer_scalar(infer, 1))
        return infer->err->code;
    if (x->rank != SHAPE_UNKNOWN && infer_value_int(infer, 1, &value) &&
        !shape_axis(value, x->rank, &axis))
        return infer_fail(infer, "axis %lld is outside [%d, %d)", (long long)value, -x->rank,
                          x->rank);
    infer->out[0] = *x;
    return 0;
}

static struct edge opposite_sum(struct grad *g, struct edge x)
{
    struct attr attrs[] = {{"exclusive", attr_bool(node_bool(g->node, "exclusive"))},
                           {"reverse", attr_bool(!node_bool(g->node, "reverse"))}};
    struct edge inputs[] = {x, grad_input(g, 1)};
    return build_op(&g->b, "Cumsum", inputs, 2, attrs, 2);
}

static int cumsum_gradient(struct grad *g)
{
    g->in[0] = opposite_sum(g, g->out[0]);
    return grad_finish(g);
}

/* Undefined where an element is 0, as a quotient by it is. */
static int cumprod_gradient(struct grad *g)
{
    struct edge product = grad_mul(g, grad_output(g, 0), g->out[0]);
    g->in[0] = grad_div(g, opposite_sum(g, product), grad_input(g, 0));
    return grad_finish(g);
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
              "end. The gradient is NaN where an element is 0."
              "\n" NO_COMPLEX,
    .half = HALF_DENIED,
    .cost = cost_elements,
    .gradient = cumprod_gradient,
};
