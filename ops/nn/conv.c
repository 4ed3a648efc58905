/* SPDX-License-Identifier: Apache-2.0
 *
 * Two-dimensional convolution and its two gradients, each of which is made of the other two.
 */
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/op_cost.h"
#include "ops/lacking.h"
#include "ops/nn/format.h"
#include "ops/nn/window.h"
#include "pass/gradient/grad.h"

/* Solves for known or partly known shapes of image and filter, and checks their channels. */
static int solve(struct infer *infer, struct window *w, const struct shape *image,
                 const struct shape *filter)
{
    if (window_init(w, infer->node, infer->err))
        return infer->err->code;
    w->y.size = filter->rank == 4 ? filter->dims[0] : SHAPE_UNKNOWN;
    w->x.size = filter->rank == 4 ? filter->dims[1] : SHAPE_UNKNOWN;
    if (image->rank == 4 && filter->rank == 4) {
        int64_t has = image->dims[w->channels], wants = filter->dims[2];
        if (has >= 0 && wants >= 0 && has != wants)
            return infer_fail(infer, "input has %lld channels, filter is for %lld", (long long)has,
                              (long long)wants);
    }
    return window_solve(w, infer->node, image, infer->err);
}

static int conv_shape(struct infer *infer)
{
    const struct shape *image = infer_shape(infer, 0), *filter = infer_shape(infer, 1);
    struct window w;
    if (infer_rank(infer, 0, 4) || infer_rank(infer, 1, 4) || solve(infer, &w, image, filter))
        return infer->err->code;
    infer->out[0] = window_output(&w, image, filter->rank == 4 ? filter->dims[3] : SHAPE_UNKNOWN);
    return 0;
}

/* The output that image and filter would have must be what arrives as its gradient. */
static int check_backprop(struct infer *infer, const struct window *w, const struct shape *image,
                          int64_t channels)
{
    const struct shape *given = infer_shape(infer, 2);
    struct shape expected = window_output(w, image, channels);
    if (!shape_compatible(&expected, given))
        return infer_fail(infer, "out_backprop must be %s, not %s", shape_text(&expected),
                          shape_text(given));
    return 0;
}

static int sizes_of(struct infer *infer, int input, struct shape *sizes)
{
    *sizes = SHAPE_ANY;
    if (infer_vector(infer, input))
        return infer->err->code;
    if (!infer_value_shape(infer, input, sizes)) {
        *sizes = (struct shape){4, {-1, -1, -1, -1}};
        return 0;
    }
    if (sizes->rank != 4)
        return infer_fail(infer, "sizes must have 4 elements, not %d", sizes->rank);
    return 0;
}

static int backprop_input_shape(struct infer *infer)
{
    const struct shape *filter = infer_shape(infer, 1);
    struct shape image;
    struct window w;
    if (sizes_of(infer, 0, &image) || infer_rank(infer, 1, 4) || infer_rank(infer, 2, 4) ||
        solve(infer, &w, &image, filter) ||
        check_backprop(infer, &w, &image, filter->rank == 4 ? filter->dims[3] : SHAPE_UNKNOWN))
        return infer->err->code;
    infer->out[0] = image;
    return 0;
}

static int backprop_filter_shape(struct infer *infer)
{
    const struct shape *image = infer_shape(infer, 0);
    struct shape filter;
    struct window w;
    if (sizes_of(infer, 1, &filter) || infer_rank(infer, 0, 4) || infer_rank(infer, 2, 4) ||
        solve(infer, &w, image, &filter) || check_backprop(infer, &w, image, filter.dims[3]))
        return infer->err->code;
    infer->out[0] = filter;
    return 0;
}

/* Another of the three ops with this node's attributes. */
static struct edge related(struct grad *g, const char *op, struct edge a, struct edge b,
                           struct edge c)
{
    const char *const names[] = {"strides",     "padding",          "explicit_paddings",
                                 "data_format", "use_cudnn_on_gpu", "dilations"};
    enum { N = sizeof names / sizeof *names };
    struct attr attrs[N];
    for (int i = 0; i < N; i++)
        attrs[i] = (struct attr){names[i], *node_attr(g->node, names[i])};
    struct edge inputs[] = {a, b, c};
    return build_op(&g->b, op, inputs, edge_exists(c) ? 3 : 2, attrs, N);
}

static struct edge shape_of_input(struct grad *g, int i)
{
    return build_unary(&g->b, "Shape", grad_input(g, i));
}

static int conv_gradient(struct grad *g)
{
    struct edge x = grad_input(g, 0), w = grad_input(g, 1), d = g->out[0];
    g->in[0] = related(g, "Conv2DBackpropInput", shape_of_input(g, 0), w, d);
    g->in[1] = related(g, "Conv2DBackpropFilter", x, shape_of_input(g, 1), d);
    return grad_finish(g);
}

static int backprop_input_gradient(struct grad *g)
{
    struct edge w = grad_input(g, 1), d = grad_input(g, 2), dd = g->out[0];
    g->in[1] = related(g, "Conv2DBackpropFilter", dd, shape_of_input(g, 1), d);
    g->in[2] = related(g, "Conv2D", dd, w, EDGE_NONE);
    return grad_finish(g);
}

static int backprop_filter_gradient(struct grad *g)
{
    struct edge x = grad_input(g, 0), d = grad_input(g, 2), dd = g->out[0];
    g->in[0] = related(g, "Conv2DBackpropInput", shape_of_input(g, 0), dd, d);
    g->in[2] = related(g, "Conv2D", x, dd, EDGE_NONE);
    return grad_finish(g);
}

/* Every element of the result, or of its gradient, meets one output channel's filter. */
static void convolution_cost(const struct cost_query *query, const struct shape *result,
                             const struct shape *filter, struct op_cost *cost)
{
    double channels = cost_dim(filter, filter->rank > 0 ? filter->rank - 1 : 0, query->assume);
    cost->operations = channels > 0 ? 2 * cost_count(result, query->assume) *
                                          cost_count(filter, query->assume) / channels
                                    : 0;
    cost->bytes = cost_bytes_all(query);
}

static void conv_cost(const struct cost_query *query, struct op_cost *cost)
{
    convolution_cost(query, &query->node->outputs[0].shape, &cost_input(query, 1)->shape, cost);
}

static void backprop_input_cost(const struct cost_query *query, struct op_cost *cost)
{
    convolution_cost(query, &cost_input(query, 2)->shape, &cost_input(query, 1)->shape, cost);
}

static void backprop_filter_cost(const struct cost_query *query, struct op_cost *cost)
{
    convolution_cost(query, &cost_input(query, 2)->shape, &query->node->outputs[0].shape, cost);
}

#define CONV_ATTRS                                                                                 \
    "strides: list(int), " WINDOW_PADDING_ATTR ", " FORMAT_ATTR                                    \
    ", dilations: list(int) = [1,1,1,1], use_cudnn_on_gpu: bool = true, T: floating"

const struct op_def op_Conv2D = {
    .name = "Conv2D",
    .inputs = "input: T, filter: T",
    .outputs = "output: T",
    .attrs = CONV_ATTRS,
    .doc = "Two-dimensional convolution of images [batch, height, width, channels].",
    .detail =
        "filter is [height, width, in channels, out channels], for either data_format. It is\n"
        "not flipped (a cross-correlation). strides has one number per axis of the images, 1\n"
        "for batch and channels. padding SAME: ceil(in / stride) outputs, the odd cell of\n"
        "padding at the bottom and right; VALID: none; EXPLICIT: explicit_paddings, two\n"
        "numbers per axis. dilations, like strides, says how far apart the cells of a window\n"
        "are, which then spans (size - 1) * dilation + 1. Without padding there are\n"
        "(in - span + stride) / stride outputs, cut toward zero: none for a window somewhat\n"
        "larger than the image, and an error if they were negative. use_cudnn_on_gpu is\n"
        "accepted and ignored."
        "\n"
        "Not of integers.",
    .half = HALF_ALLOWED,
    .cost = conv_cost,
    .shape = conv_shape,
    .gradient = conv_gradient,
};

const struct op_def op_Conv2DBackpropInput = {
    .name = "Conv2DBackpropInput",
    .inputs = "input_sizes: int32, filter: T, out_backprop: T",
    .outputs = "output: T",
    .attrs = CONV_ATTRS,
    .doc = "Gradient of Conv2D with respect to its input, which has the shape input_sizes.",
    .detail = "Also known as transposed convolution."
              "\n"
              "Not of integers.",
    .half = HALF_ALLOWED,
    .cost = backprop_input_cost,
    .shape = backprop_input_shape,
    .gradient = backprop_input_gradient,
};

const struct op_def op_Conv2DBackpropFilter = {
    .name = "Conv2DBackpropFilter",
    .inputs = "input: T, filter_sizes: int32, out_backprop: T",
    .outputs = "output: T",
    .attrs = CONV_ATTRS,
    .doc = "Gradient of Conv2D with respect to its filter, which has the shape filter_sizes.",
    .half = HALF_ALLOWED,
    .cost = backprop_filter_cost,
    .shape = backprop_filter_shape,
    .gradient = backprop_filter_gradient,
};
