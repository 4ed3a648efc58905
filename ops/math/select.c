/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/op_cost.h"
#include "ops/lacking.h"
#include "ops/math/gradients.h"
#include "ops/math/results.h"

struct shape select_condition_shape(const struct shape *condition, const struct shape *values)
{
    struct shape shape = *condition;
    if (condition->rank == 1 && values->rank > 1 && condition->dims[0] == values->dims[0]) {
        shape.rank = values->rank;
        for (int i = 1; i < values->rank; i++)
            shape.dims[i] = 1;
    }
    return shape;
}

static int select_shape(struct infer *infer)
{
    const struct shape *condition = infer_shape(infer, 0);
    const struct shape *t = infer_shape(infer, 1), *e = infer_shape(infer, 2);
    struct shape values;
    if (!shape_broadcast(t, e, &values))
        return infer_fail(infer, "shapes %s and %s cannot be broadcast", shape_text(t),
                          shape_text(e));
    if (condition->rank == SHAPE_UNKNOWN || values.rank == SHAPE_UNKNOWN)
        return 0;
    bool vector = condition->rank == 1 && values.rank > 1;
    if (vector && (condition->dims[0] == SHAPE_UNKNOWN || values.dims[0] == SHAPE_UNKNOWN)) {
        int last = values.rank - 1; /* rows or columns: only the last dimension is unsure */
        if (values.dims[last] == 1)
            values.dims[last] = SHAPE_UNKNOWN;
        infer->out[0] = values;
        return 0;
    }
    struct shape as = select_condition_shape(condition, &values);
    if (!shape_broadcast(&as, &values, &infer->out[0]))
        return infer_fail(infer, "condition %s does not fit values %s", shape_text(condition),
                          shape_text(&values));
    return 0;
}

/* Sums `gradient`, which has the result's shape, over the axes that input i was broadcast along. */
static struct edge unbroadcast(struct grad *g, struct edge gradient, int i)
{
    struct build *b = &g->b;
    const struct shape *part = build_shape(b, grad_input(g, i));
    const struct shape *full = build_shape(b, grad_output(g, 0));
    if (b->err->code || (shape_is_known(part) && shape_equal(part, full)))
        return gradient;
    struct edge shape = build_unary(b, "Shape", grad_input(g, i));
    struct edge result = build_unary(b, "Shape", grad_output(g, 0));
    struct edge axes = build_binary(b, "BroadcastGradientArgs", shape, result);
    return build_binary(b, "Reshape", build_binary(b, "Sum", gradient, axes), shape);
}

static void select_gradient(struct grad *g)
{
    struct edge condition = grad_input(g, 0);
    struct edge zero = build_scalar_like(&g->b, g->out[0], 0);
    g->in[1] = unbroadcast(g, grad_select(g, condition, g->out[0], zero), 1);
    g->in[2] = unbroadcast(g, grad_select(g, condition, zero, g->out[0]), 2);
}

const struct op_def op_Select = {
    .name = "Select",
    .inputs = "condition: bool, t: T, e: T",
    .outputs = "output: T",
    .attrs = "T: numeric|bool",
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .shape = select_shape,
    .doc = "t where the condition is true, else e, with broadcasting.",
    .detail =
        "A condition that is a vector as long as the values' first dimension chooses whole rows "
        "of values with more dimensions; otherwise all three are broadcast."
        "\n" NO_STRINGS,
    .gradient = select_gradient,
};
