/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response normalization across channels.
 */
#include "graph/infer.h"
#include "graph/op.h"
#include "pass/gradient/grad.h"

static int lrn_shape(struct infer *infer)
{
    if (infer_rank(infer, 0, 4))
        return infer->err->code;
    infer->out[0] = *infer_shape(infer, 0);
    return 0;
}

static int lrn_grad_shape(struct infer *infer)
{
    struct shape merged;
    if (infer_rank(infer, 0, 4) || infer_merge(infer, 0, 1, &merged))
        return infer->err->code;
    if (!shape_merge(&merged, infer_shape(infer, 2), &infer->out[0]))
        return infer_fail(infer, "output_image must be %s, not %s", shape_text(&merged),
                          shape_text(infer_shape(infer, 2)));
    return 0;
}

static int lrn_gradient(struct grad *g)
{
    const char *const names[] = {"depth_radius", "bias", "alpha", "beta"};
    struct attr attrs[4];
    for (int i = 0; i < 4; i++)
        attrs[i] = (struct attr){names[i], *node_attr(g->node, names[i])};
    struct edge inputs[] = {g->out[0], grad_input(g, 0), grad_output(g, 0)};
    g->in[0] = build_op(&g->b, "LRNGrad", inputs, 3, attrs, 4);
    return grad_finish(g);
}

#define LRN_ATTRS                                                                                  \
    "depth_radius: int = 5 >= 0, bias: float = 1, alpha: float = 1, beta: float = 0.5, "           \
    "T: floating = float32"

const struct op_def op_LRN = {
    .name = "LRN",
    .inputs = "input: T",
    .outputs = "output: T",
    .attrs = LRN_ATTRS,
    .doc = "Local response normalization: each element by the squares of neighbouring channels.",
    .detail = "output = input / (bias + alpha * sum of input^2 over channels c - depth_radius to\n"
              "c + depth_radius)^beta. alpha is not divided by the number of channels summed.",
    .shape = lrn_shape,
    .gradient = lrn_gradient,
};

const struct op_def op_LRNGrad = {
    .name = "LRNGrad",
    .inputs = "input_grads: T, input_image: T, output_image: T",
    .outputs = "output: T",
    .attrs = LRN_ATTRS,
    .doc = "Gradient of LRN from its input and output.",
    .shape = lrn_grad_shape,
};
