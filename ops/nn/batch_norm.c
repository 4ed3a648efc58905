/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization.
 */
#include "ops/nn/batch_norm.h"
#include "graph/op_cost.h"

static int norm_shape(struct infer *infer)
{
    const struct shape empty = shape_vector(0);
    bool training = node_bool(infer->node, "is_training");
    struct shape channels;
    if (norm_per_channel(infer, 0, 1, training ? 3 : 5, &channels))
        return infer->err->code;
    for (int i = 3; training && i < 5; i++)
        if (!shape_compatible(infer_shape(infer, i), &empty))
            return infer_fail(infer, "%s must be empty in training, not %s",
                              infer->node->op->inputs[i].name, shape_text(infer_shape(infer, i)));
    infer->out[0] = *infer_shape(infer, 0);
    for (int i = 1; i < 5; i++)
        infer->out[i] = channels;
    return 0;
}

static struct edge sum_of(struct build *b, struct edge x, struct edge y)
{
    if (!edge_exists(x) || !edge_exists(y))
        return edge_exists(x) ? x : y;
    return build_binary(b, "Add", x, y);
}

/* In training the other outputs are also moments of x: with m the mean and N positions, dx = (d
 * mean + 2 (x - m) d variance) / N, and the unbiased variance is N / (N - 1) of the other. Given
 * mean and variance have no gradient. */
static void moments_gradient(struct grad *g)
{
    struct build *b = &g->b;
    if (!node_bool(g->node, "is_training"))
        return;
    struct edge x = grad_input(g, 0), n = norm_count(g, x, grad_input(g, 1));
    struct edge mean = sum_of(b, g->out[1], g->out[3]), variance = g->out[2], total = g->in[0];
    if (edge_exists(variance)) {
        struct edge less = build_binary(b, "Sub", n, build_scalar_like(b, n, 1));
        less = build_binary(b, "Maximum", less, build_scalar_like(b, n, 1));
        variance = grad_by_count(g, "Mul", variance, grad_div(g, n, less));
    }
    variance = sum_of(b, variance, g->out[4]);
    if (edge_exists(mean))
        total = sum_of(b, total, norm_spread(g, grad_by_count(g, "Div", mean, n), x));
    if (edge_exists(variance)) {
        struct edge centred = build_binary(b, "Sub", x, norm_wide(g, grad_output(g, 3)));
        struct edge slope = norm_wide(g, grad_scale(g, 2, grad_by_count(g, "Div", variance, n)));
        total = sum_of(b, total, grad_mul(g, centred, slope));
    }
    g->in[0] = total;
}

static void norm_gradient(struct grad *g)
{
    if (edge_exists(g->out[0])) {
        struct edge inputs[] = {g->out[0], grad_input(g, 0), grad_input(g, 1), grad_output(g, 3),
                                grad_output(g, 4)};
        struct edge made = grad_op(g, "FusedBatchNormGrad", inputs, 5);
        for (int i = 0; i < 3; i++)
            g->in[i] = build_slot(made, i);
    }
    moments_gradient(g);
}

const struct op_def op_FusedBatchNorm = {
    .name = "FusedBatchNorm",
    .inputs = "x: T, scale: T, offset: T, mean: T, variance: T",
    .outputs = "y: T, batch_mean: T, batch_variance: T, reserve_space_1: T, reserve_space_2: T",
    .attrs = NORM_ATTRS,
    .doc = "Batch normalization of images: (x - mean) / sqrt(variance + epsilon) * scale + offset.",
    .detail =
        "In training mean and variance are those of the batch, per channel, and the inputs of\n"
        "that name are empty; else they are the inputs. The variance that normalizes, and\n"
        "reserve_space_2, is biased; batch_variance is that times N / (N - 1). The reserve\n"
        "outputs are for the gradient. In training all outputs have gradients; a mean and a\n"
        "variance that are given have none.",
    .half = HALF_AROUND,
    .cost = cost_elements,
    .shape = norm_shape,
    .gradient = norm_gradient,
};
