/* SPDX-License-Identifier: Apache-2.0
 *
 * Two-dimensional convolution and its two gradients; the gradients of each op are built from the
 * other two. And the same with a filter for each position.
 */
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/op_cost.h"
#include "ops/lacking.h"
#include "ops/nn/conv_shapes.h"
#include "ops/nn/format.h"
#include "ops/nn/local.h"
#include "ops/nn/window.h"
#include "pass/gradient/grad.h"

/* One of a filter's last four dimensions. */
static int64_t filter_dim(const struct shape *filter, int i)
{
    return filter->rank < 4 ? SHAPE_UNKNOWN : filter->dims[filter->rank - 4 + i];
}

/* Solves for known or partly known shapes of image and filter, and checks their channels. */
static int solve(struct infer *infer, struct window *w, const struct shape *image,
                 const struct shape *filter)
{
    if (window_init(w, infer->node, infer->err))
        return infer->err->code;
    w->y.size = filter_dim(filter, 0);
    w->x.size = filter_dim(filter, 1);
    if (image->rank == 4) {
        int64_t has = image->dims[w->channels], groups;
        if (has >= 0 && filter_dim(filter, 2) >= 0 &&
            conv_find_groups(has, filter, &groups, infer->err))
            return infer->err->code;
    }
    if (window_solve(w, image, infer->err))
        return infer->err->code;
    if (filter->rank != 6)
        return 0;
    /* The filter's shape tells its positions; some may not have been known from the output. */
    struct shape given = shape_matrix(filter->dims[0], filter->dims[1]);
    struct shape there = shape_matrix(w->y.out, w->x.out), met;
    if (!shape_merge(&given, &there, &met))
        return infer_fail(infer, "filter is for %s positions, the output has %s",
                          shape_text(&given), shape_text(&there));
    w->y.out = met.dims[0];
    w->x.out = met.dims[1];
    return 0;
}

static int conv_shape(struct infer *infer)
{
    const struct shape *image = infer_shape(infer, 0), *filter = infer_shape(infer, 1);
    struct window w;
    if (infer_rank(infer, 0, 4) || infer_rank(infer, 1, conv_filter_rank(infer->node)) ||
        solve(infer, &w, image, filter))
        return infer->err->code;
    infer->out[0] = window_output(&w, image, filter_dim(filter, 3));
    return 0;
}

/* Checks that the incoming gradient has the shape of the output for this image and filter. */
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

static int sizes_of(struct infer *infer, int input, int rank, struct shape *sizes)
{
    *sizes = SHAPE_ANY;
    if (infer_vector(infer, input))
        return infer->err->code;
    if (!infer_value_shape(infer, input, sizes)) {
        *sizes = (struct shape){rank, {-1, -1, -1, -1, -1, -1}};
        return 0;
    }
    if (sizes->rank != rank)
        return infer_fail(infer, "sizes must have %d elements, not %d", rank, sizes->rank);
    return 0;
}

static int backprop_input_shape(struct infer *infer)
{
    const struct shape *filter = infer_shape(infer, 1);
    struct shape image;
    struct window w;
    if (sizes_of(infer, 0, 4, &image) || infer_rank(infer, 1, conv_filter_rank(infer->node)) ||
        infer_rank(infer, 2, 4) || solve(infer, &w, &image, filter) ||
        check_backprop(infer, &w, &image, filter_dim(filter, 3)))
        return infer->err->code;
    infer->out[0] = image;
    return 0;
}

static int backprop_filter_shape(struct infer *infer)
{
    const struct shape *image = infer_shape(infer, 0);
    struct shape filter;
    struct window w;
    if (sizes_of(infer, 1, conv_filter_rank(infer->node), &filter) || infer_rank(infer, 0, 4) ||
        infer_rank(infer, 2, 4) || solve(infer, &w, image, &filter) ||
        check_backprop(infer, &w, image, filter_dim(&filter, 3)))
        return infer->err->code;
    infer->out[0] = filter;
    return 0;
}

enum related {
    RELATED_FORWARD,
    RELATED_INPUT,
    RELATED_FILTER,
};

/* Builds another of the three ops, with this node's attributes. */
static struct edge related(struct grad *g, enum related which, struct edge a, struct edge b,
                           struct edge c)
{
    static const char *const ops[2][3] = {{"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"},
                                          {"LocallyConnected2D", "LocallyConnected2DBackpropInput",
                                           "LocallyConnected2DBackpropFilter"}};
    const char *const names[] = {"strides",     "padding",          "explicit_paddings",
                                 "data_format", "use_cudnn_on_gpu", "dilations"};
    enum { N = sizeof names / sizeof *names };
    struct attr attrs[N];
    int n = 0;
    for (int i = 0; i < N; i++)
        if (node_attr(g->node, names[i]))
            attrs[n++] = (struct attr){names[i], *node_attr(g->node, names[i])};
    struct edge inputs[] = {a, b, c};
    return build_op(&g->b, ops[conv_is_local(g->node)][which], inputs, edge_exists(c) ? 3 : 2,
                    attrs, n);
}

static struct edge shape_of_input(struct grad *g, int i)
{
    return build_unary(&g->b, "Shape", grad_input(g, i));
}

static void conv_gradient(struct grad *g)
{
    struct edge x = grad_input(g, 0), w = grad_input(g, 1), d = g->out[0];
    g->in[0] = related(g, RELATED_INPUT, shape_of_input(g, 0), w, d);
    g->in[1] = related(g, RELATED_FILTER, x, shape_of_input(g, 1), d);
}

static void backprop_input_gradient(struct grad *g)
{
    struct edge w = grad_input(g, 1), d = grad_input(g, 2), dd = g->out[0];
    g->in[1] = related(g, RELATED_FILTER, dd, shape_of_input(g, 1), d);
    g->in[2] = related(g, RELATED_FORWARD, dd, w, EDGE_NONE);
}

static void backprop_filter_gradient(struct grad *g)
{
    struct edge x = grad_input(g, 0), d = grad_input(g, 2), dd = g->out[0];
    g->in[0] = related(g, RELATED_INPUT, shape_of_input(g, 0), dd, d);
    g->in[2] = related(g, RELATED_FORWARD, x, dd, EDGE_NONE);
}

/* Each element of the result, or of its gradient, meets the cells of one filter's window. */
static void convolution_cost(const struct cost_query *query, const struct shape *result,
                             const struct shape *filter, struct op_cost *cost)
{
    double cells = 1;
    for (int i = filter->rank - 4; filter->rank >= 4 && i < filter->rank - 1; i++)
        cells *= cost_dim(filter, i, query->assume);
    cost->operations = 2 * cost_count(result, query->assume) * cells;
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

static bool conv_window(const struct node *node, const struct shape *image,
                        const struct shape *filters, struct op_window *window)
{
    struct error err = ERROR_INIT;
    struct window w;
    if (window_init(&w, node, &err))
        return false;
    w.y.size = filter_dim(filters, 0);
    w.x.size = filter_dim(filters, 1);
    return !window_solve(&w, image, &err) && window_declare(&w, window);
}

#define CONV_ATTRS                                                                                 \
    "strides: list(int), " WINDOW_PADDING_ATTR ", " FORMAT_ATTR                                    \
    ", dilations: list(int) = [1,1,1,1], use_cudnn_on_gpu: bool = true, T: floating"

#define CONVOLUTION(op, ...)                                                                       \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .outputs = "output: T",                                         \
                                   .half = HALF_ALLOWED,                                           \
                                   .window = conv_window,                                          \
                                   __VA_ARGS__}

/* Shared by convolutions with one filter and with a filter per position, whose tiles differ. */
#define FORWARD(filters)                                                                           \
    .inputs = "input: T, filter: T", .cost = conv_cost, .shape = conv_shape,                       \
    .gradient = conv_gradient, .tiles = {{LIES_IN, filters}, LIES_OUT}
#define IMAGE_GRADIENT(filters)                                                                    \
    .inputs = "input_sizes: int32, filter: T, out_backprop: T", .cost = backprop_input_cost,       \
    .shape = backprop_input_shape, .gradient = backprop_input_gradient,                            \
    .tiles = {{LIES_SIZES, filters, LIES_OUT}, LIES_IN}
#define FILTER_GRADIENT(sizes, filters)                                                            \
    .inputs = "input: T, filter_sizes: int32, out_backprop: T", .cost = backprop_filter_cost,      \
    .shape = backprop_filter_shape, .gradient = backprop_filter_gradient,                          \
    .tiles = {{LIES_IN, sizes, LIES_OUT}, filters}

CONVOLUTION(
    Conv2D, FORWARD(LIES_WHOLE), .attrs = CONV_ATTRS,
    .doc = "Two-dimensional convolution of images [batch, height, width, channels].",
    .detail =
        "filter is [height, width, in channels, out channels], for either data_format. It is\n"
        "not flipped (a cross-correlation). If it has fewer in channels than the images, both\n"
        "kinds of channels are in groups, and a group of the output is computed from that of\n"
        "the images: with one in channel it is depthwise. strides has one number per axis of\n"
        "the images, 1 for batch and channels. padding SAME: ceil(in / stride) outputs, the odd\n"
        "cell of padding at the bottom and right; VALID: none; EXPLICIT: explicit_paddings, two\n"
        "numbers per axis. dilations, like strides, says how far apart the cells of a window\n"
        "are, which then spans (size - 1) * dilation + 1. Without padding there are\n"
        "(in - span + stride) / stride outputs, cut toward zero: none for a window somewhat\n"
        "larger than the image, and an error if they were negative. use_cudnn_on_gpu is\n"
        "accepted and ignored."
        "\n"
        "Not of integers.");

CONVOLUTION(Conv2DBackpropInput, IMAGE_GRADIENT(LIES_WHOLE), .attrs = CONV_ATTRS,
            .doc = "Gradient of Conv2D with respect to its input, which has the shape input_sizes.",
            .detail = "Also known as transposed convolution."
                      "\n"
                      "Not of integers.");

CONVOLUTION(
    Conv2DBackpropFilter, FILTER_GRADIENT(LIES_WHOLE, LIES_WHOLE), .attrs = CONV_ATTRS,
    .doc = "Gradient of Conv2D with respect to its filter, which has the shape filter_sizes.");

#define LOCAL_ATTRS "strides: list(int), " WINDOW_PADDING_ATTR ", " FORMAT_ATTR ", T: floating"

CONVOLUTION(
    LocallyConnected2D, FORWARD(LIES_FILTERS), .attrs = LOCAL_ATTRS,
    .doc = "As Conv2D, with a filter of its own for each position of the output.",
    .detail = "filter is [out height, out width, height, width, in channels, out channels], for\n"
              "either data_format: weights are not shared among positions (Le et al. 2012; Coates\n"
              "et al. 2013; Keras' layer of that name). strides and padding are those of Conv2D.");

CONVOLUTION(
    LocallyConnected2DBackpropInput, IMAGE_GRADIENT(LIES_FILTERS), .attrs = LOCAL_ATTRS,
    .doc = "Gradient of LocallyConnected2D with respect to its input, of the shape input_sizes.");

CONVOLUTION(
    LocallyConnected2DBackpropFilter, FILTER_GRADIENT(LIES_FILTER_SIZES, LIES_FILTERS),
    .attrs = LOCAL_ATTRS,
    .doc = "Gradient of LocallyConnected2D with respect to its filter, of the shape filter_sizes.");
