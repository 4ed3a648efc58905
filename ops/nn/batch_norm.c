/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization and its gradient.
 */
#include "graph/infer.h"
#include "graph/op.h"
#include "ops/nn/format.h"
#include "pass/gradient/grad.h"

/* All vectors from input `first` on have one element per channel; `empty`: some have none. */
static int per_channel(struct infer *infer, int image, int first, struct shape *channels)
{
    const struct shape *x = infer_shape(infer, image);
    *channels = shape_vector(SHAPE_UNKNOWN);
    if (infer_rank(infer, image, 4))
        return infer->err->code;
    if (x->rank == 4)
        channels->dims[0] = x->dims[format_channel_axis(infer->node, 4)];
    for (int i = first; i < infer->n_in; i++) {
        const struct shape *v = infer_shape(infer, i);
        bool empty = v->rank == 1 && v->dims[0] == 0;
        struct shape known = *channels;
        if (infer_vector(infer, i))
            return infer->err->code;
        if (!empty && !shape_merge(&known, v, channels))
            return infer_fail(infer, "%s must have %lld elements, one per channel, not %lld",
                              infer->node->op->inputs[i].name, (long long)known.dims[0],
                              (long long)v->dims[0]);
    }
    return 0;
}

static int norm_shape(struct infer *infer)
{
    struct shape channels;
    if (per_channel(infer, 0, 1, &channels))
        return infer->err->code;
    infer->out[0] = *infer_shape(infer, 0);
    for (int i = 1; i < 5; i++)
        infer->out[i] = channels;
    return 0;
}

static int norm_grad_shape(struct infer *infer)
{
    struct shape channels;
    if (infer_merge(infer, 0, 1, &infer->out[0]) || per_channel(infer, 1, 2, &channels))
        return infer->err->code;
    infer->out[1] = infer->out[2] = channels;
    infer->out[3] = infer->out[4] = shape_vector(0);
    return 0;
}

static int norm_gradient(struct grad *g)
{
    const char *const names[] = {"epsilon", "data_format", "is_training"};
    struct attr attrs[3];
    for (int i = 0; i < 3; i++)
        attrs[i] = (struct attr){names[i], *node_attr(g->node, names[i])};
    if (!edge_exists(g->out[0]))
        return grad_finish(g);
    struct edge inputs[] = {g->out[0], grad_input(g, 0), grad_input(g, 1), grad_output(g, 3),
                            grad_output(g, 4)};
    struct edge made = build_op(&g->b, "FusedBatchNormGrad", inputs, 5, attrs, 3);
    for (int i = 0; i < 3; i++)
        g->in[i] = build_slot(made, i);
    return grad_finish(g);
}

#define NORM_ATTRS "epsilon: float = 0.0001, " FORMAT_ATTR ", is_training: bool = true, T: floating"

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
        "outputs are for the gradient.",
    .shape = norm_shape,
    .gradient = norm_gradient,
};

const struct op_def op_FusedBatchNormGrad = {
    .name = "FusedBatchNormGrad",
    .inputs = "y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T",
    .outputs = "x_backprop: T, scale_backprop: T, offset_backprop: T, reserve_space_3: T, "
               "reserve_space_4: T",
    .attrs = NORM_ATTRS,
    .doc = "Gradients of FusedBatchNorm with respect to x, scale and offset.",
    .detail =
        "The reserve inputs are FusedBatchNorm's reserve outputs; the reserve outputs are empty.",
    .shape = norm_grad_shape,
};
