/* SPDX-License-Identifier: Apache-2.0
 *
 * Two-dimensional convolution and its two gradients; the gradients of each op are built from the
 * other two. And the same with a filter for each position.
 */
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/op_cost.h"
#include "ops/nn/conv_shapes.h"
#include "ops/nn/format.h"
#include "pass/gradient/grad.h"

/* Of all three directions: the image, the filter or the sizes of one of them, and the gradient. */
static int conv_shape(struct infer *infer)
{
    struct conv c;
    if (conv_init(&c, infer->node, infer->err))
        return infer->err->code;
    const struct shape *in[] = {infer_shape(infer, 0), infer_shape(infer, 1)};
    const int ranks[] = {4, c.local ? 6 : 4};
    struct shape sizes;
    for (int i = 0; i < 2; i++) {
        bool is_sizes = c.direction == (i == 0 ? CONV_IMAGE : CONV_FILTER);
        if (is_sizes ? infer_sizes(infer, i, ranks[i], &sizes) : infer_rank(infer, i, ranks[i]))
            return infer->err->code;
        in[i] = is_sizes ? &sizes : in[i];
    }
    bool is_gradient = c.direction != CONV_FORWARD;
    if ((is_gradient && infer_rank(infer, 2, 4)) || conv_solve(&c, in[0], in[1], infer->err))
        return infer->err->code;
    if (is_gradient && !shape_compatible(&c.output, infer_shape(infer, 2)))
        return infer_fail(infer, "out_backprop must be %s, not %s", shape_text(&c.output),
                          shape_text(infer_shape(infer, 2)));
    const struct shape *const results[] = {&c.output, &c.image, &c.filter};
    infer->out[0] = *results[c.direction];
    return 0;
}

/* Builds another of the three ops, with this node's attributes. */
static struct edge related(struct grad *g, enum conv_direction which, struct edge a, struct edge b,
                           struct edge c)
{
    static const char *const ops[2][3] = {{"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"},
                                          {"LocallyConnected2D", "LocallyConnected2DBackpropInput",
                                           "LocallyConnected2DBackpropFilter"}};
    return grad_op(g, ops[conv_is_local(g->node)][which], (struct edge[]){a, b, c},
                   edge_exists(c) ? 3 : 2);
}

static struct edge shape_of_input(struct grad *g, int i)
{
    return build_unary(&g->b, "Shape", grad_input(g, i));
}

static void conv_gradient(struct grad *g)
{
    struct edge x = grad_input(g, 0), w = grad_input(g, 1), d = g->out[0];
    g->in[0] = related(g, CONV_IMAGE, shape_of_input(g, 0), w, d);
    g->in[1] = related(g, CONV_FILTER, x, shape_of_input(g, 1), d);
}

static void backprop_input_gradient(struct grad *g)
{
    struct edge w = grad_input(g, 1), d = grad_input(g, 2), dd = g->out[0];
    g->in[1] = related(g, CONV_FILTER, dd, shape_of_input(g, 1), d);
    g->in[2] = related(g, CONV_FORWARD, dd, w, EDGE_NONE);
}

static void backprop_filter_gradient(struct grad *g)
{
    struct edge x = grad_input(g, 0), d = grad_input(g, 2), dd = g->out[0];
    g->in[0] = related(g, CONV_IMAGE, shape_of_input(g, 0), dd, d);
    g->in[2] = related(g, CONV_FORWARD, x, dd, EDGE_NONE);
}

/* Each element of the result, or of its gradient, meets the cells of one filter's window. */
static void conv_cost(const struct cost_query *query, struct op_cost *cost)
{
    enum conv_direction direction = conv_direction_of(query->node);
    const struct shape *own = &query->node->outputs[0].shape;
    const struct shape *result = direction == CONV_FORWARD ? own : &cost_input(query, 2)->shape;
    const struct shape *filter = direction == CONV_FILTER ? own : &cost_input(query, 1)->shape;
    double cells = 1;
    for (int i = filter->rank - 4; filter->rank >= 4 && i < filter->rank - 1; i++)
        cells *= cost_dim(filter, i, query->assume);
    cost->operations = 2 * cost_count(result, query->assume) * cells;
    cost->bytes = cost_bytes_all(query);
}

#define CONV_ATTRS                                                                                 \
    "strides: list(int), " WINDOW_PADDING_ATTR ", " FORMAT_ATTR                                    \
    ", dilations: list(int) = [1,1,1,1], use_cudnn_on_gpu: bool = true, T: floating"

#define CONVOLUTION(op, ...)                                                                       \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .outputs = "output: T",                                         \
                                   .half = HALF_ALLOWED,                                           \
                                   .shape = conv_shape,                                            \
                                   .cost = conv_cost,                                              \
                                   .window = window_declared,                                      \
                                   __VA_ARGS__}

/* Shared by convolutions with one filter and with a filter per position: by the axes that filters
 * have in front. Channels are needed whole: the lengths of their axes tell the groups that they are
 * in. */
#define FORWARD(axes)                                                                              \
    .inputs = "input: T, filter: T", .gradient = conv_gradient,                                    \
    .rule = "output[b,y,x,f:]@ += input[b,y^,x^,c:]@ filter[" axes "i:,j:,d:,f:]"
#define IMAGE_GRADIENT(axes)                                                                       \
    .inputs = "input_sizes: int32, filter: T, out_backprop: T",                                    \
    .gradient = backprop_input_gradient,                                                           \
    .rule = "output[b,y^,x^,c:]@ += input_sizes# filter[" axes "i:,j:,d:,f:] "                     \
            "out_backprop[b,y,x,f:]@"
#define FILTER_GRADIENT(axes)                                                                      \
    .inputs = "input: T, filter_sizes: int32, out_backprop: T",                                    \
    .gradient = backprop_filter_gradient,                                                          \
    .rule = "output[" axes "i:,j:,d:,f:] += input[b,y^,x^,c:]@ filter_sizes# "                     \
            "out_backprop[b,y,x,f:]@"

CONVOLUTION(
    Conv2D, FORWARD(""), .attrs = CONV_ATTRS,
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

CONVOLUTION(Conv2DBackpropInput, IMAGE_GRADIENT(""), .attrs = CONV_ATTRS,
            .doc = "Gradient of Conv2D with respect to its input, which has the shape input_sizes.",
            .detail = "Also known as transposed convolution."
                      "\n"
                      "Not of integers.");

CONVOLUTION(
    Conv2DBackpropFilter, FILTER_GRADIENT(""), .attrs = CONV_ATTRS,
    .doc = "Gradient of Conv2D with respect to its filter, which has the shape filter_sizes.");

#define LOCAL_ATTRS "strides: list(int), " WINDOW_PADDING_ATTR ", " FORMAT_ATTR ", T: floating"

CONVOLUTION(
    LocallyConnected2D, FORWARD("y,x,"), .attrs = LOCAL_ATTRS,
    .doc = "As Conv2D, with a filter of its own for each position of the output.",
    .detail = "filter is [out height, out width, height, width, in channels, out channels], for\n"
              "either data_format: weights are not shared among positions (Le et al. 2012; Coates\n"
              "et al. 2013; Keras' layer of that name). strides and padding are those of Conv2D.");

CONVOLUTION(
    LocallyConnected2DBackpropInput, IMAGE_GRADIENT("y,x,"), .attrs = LOCAL_ATTRS,
    .doc = "Gradient of LocallyConnected2D with respect to its input, of the shape input_sizes.");

CONVOLUTION(
    LocallyConnected2DBackpropFilter, FILTER_GRADIENT("y,x,"), .attrs = LOCAL_ATTRS,
    .doc = "Gradient of LocallyConnected2D with respect to its filter, of the shape filter_sizes.");
