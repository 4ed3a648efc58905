/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization of images [.., channels ..], with vectors of one element per channel, its
 * gradient, and the gradient of that.
 */
#include "graph/op_cost.h"
#include "ops/math/gradients.h"
#include "ops/nn/format.h"

#define NORM_ATTRS "epsilon: float = 0.0001, " FORMAT_ATTR ", is_training: bool = true, T: floating"

/* ---- shapes ---- */

/* Checks that input `image` has rank 4, and that inputs `first` to `end` - 1 have one element per
 * channel; `channels` is their shape. */
static int norm_per_channel(struct infer *infer, int image, int first, int end,
                            struct shape *channels)
{
    const struct shape *x = infer_shape(infer, image);
    *channels = shape_vector(SHAPE_UNKNOWN);
    if (infer_rank(infer, image, 4))
        return infer->err->code;
    if (x->rank == 4)
        channels->dims[0] = x->dims[format_channel_axis(infer->node, 4)];
    for (int i = first; i < end; i++) {
        const struct shape *v = infer_shape(infer, i);
        struct shape known = *channels;
        if (infer_vector(infer, i))
            return infer->err->code;
        if (!shape_merge(&known, v, channels))
            return infer_fail(infer, "%s must have %lld elements, one per channel, not %lld",
                              infer->node->op->inputs[i].name, (long long)known.dims[0],
                              (long long)v->dims[0]);
    }
    return 0;
}

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

static int norm_grad_shape(struct infer *infer)
{
    struct shape channels;
    if (infer_merge(infer, 0, 1, &infer->out[0]) || norm_per_channel(infer, 1, 2, 5, &channels))
        return infer->err->code;
    infer->out[1] = infer->out[2] = channels;
    infer->out[3] = infer->out[4] = shape_vector(0);
    return 0;
}

/* ---- for gradient functions ---- */

/* Reshapes a vector so that it broadcasts with images. */
static struct edge norm_wide(struct grad *g, struct edge vector)
{
    const int64_t shape[] = {-1, 1, 1};
    if (!format_is_nchw(g->node))
        return vector;
    return build_binary(&g->b, "Reshape", vector, build_ints(&g->b, shape, 3));
}

/* The same, repeated to the shape of the image. */
static struct edge norm_spread(struct grad *g, struct edge vector, struct edge image)
{
    struct edge zeros = build_unary(&g->b, "ZerosLike", image);
    return build_binary(&g->b, "Add", zeros, norm_wide(g, vector));
}

/* Reduces an image per channel, by "Sum" or "Mean". */
static struct edge norm_reduce(struct grad *g, const char *op, struct edge image)
{
    const int64_t nhwc[] = {0, 1, 2}, nchw[] = {0, 2, 3};
    return build_binary(&g->b, op, image,
                        build_ints(&g->b, format_is_nchw(g->node) ? nchw : nhwc, 3));
}

static struct edge element_count(struct grad *g, struct edge x)
{
    return grad_cast(g, build_unary(&g->b, "Size", x), grad_count_type(g, x));
}

/* The number of positions per channel, a scalar of the type of counts (grad_count_type). */
static struct edge norm_count(struct grad *g, struct edge image, struct edge vector)
{
    return grad_div(g, element_count(g, image), element_count(g, vector));
}

/* ---- FusedBatchNorm ---- */

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

/* ---- FusedBatchNormGrad ---- */

static struct edge by_count(struct grad *g, struct edge x, struct edge n)
{
    return grad_by_count(g, "Mul", x, n);
}

/* ---- the gradient of the gradient ---- */

/* With c = x - mean, r = 1 / sqrt(variance + epsilon), N positions and sums over them:
 *     dx = scale r (dy - mean(dy) - r^2 c mean(dy c)), or, not in training, scale r dy
 *     dscale = r sum(dy c), doffset = sum(dy).
 * A, B and C are the incoming gradients of these. All vectors are per channel. */
struct second {
    bool training;
    struct edge dy, scale, r, c, n;
    struct edge a, b, c_out;
    struct edge sum_a_dy;                           /* sum(A dy) */
    struct edge mean_a, mean_dy, mean_ac, mean_dyc; /* mean(A), mean(dy), mean(A c), mean(dy c) */
};

static struct edge subtract(struct grad *g, struct edge x, struct edge y)
{
    return build_binary(&g->b, "Sub", x, y);
}

static struct edge add(struct grad *g, struct edge x, struct edge y)
{
    return build_binary(&g->b, "Add", x, y);
}

static struct edge times(struct grad *g, struct edge image, struct edge vector)
{
    return grad_mul(g, image, norm_wide(g, vector));
}

static struct edge mean_of_product(struct grad *g, struct edge x, struct edge y)
{
    return norm_reduce(g, "Mean", grad_mul(g, x, y));
}

/* scale r (A - mean(A) - r^2 c mean(A c)) + B r c + C */
static struct edge to_dy(struct grad *g, const struct second *s)
{
    struct edge inner = s->a;
    if (s->training) {
        struct edge slope = grad_mul(g, build_unary(&g->b, "Square", s->r), s->mean_ac);
        inner = subtract(g, inner, norm_wide(g, s->mean_a));
        inner = subtract(g, inner, times(g, s->c, slope));
    }
    struct edge first = times(g, inner, grad_mul(g, s->scale, s->r));
    struct edge second = times(g, s->c, grad_mul(g, s->b, s->r));
    return add(g, add(g, first, second), norm_wide(g, s->c_out));
}

/* N r^2 mean(A c) mean(dy c), the part of sum(A dx) that the statistics remove. */
static struct edge curvature(struct grad *g, const struct second *s)
{
    struct edge square = build_unary(&g->b, "Square", s->r);
    struct edge product = grad_mul(g, s->mean_ac, s->mean_dyc);
    return by_count(g, grad_mul(g, square, product), s->n);
}

/* sum(A dy) - N mean(A) mean(dy), which times scale r is sum(A dx) except for the curvature. */
static struct edge covariance(struct grad *g, const struct second *s)
{
    if (!s->training)
        return s->sum_a_dy;
    return subtract(g, s->sum_a_dy, by_count(g, grad_mul(g, s->mean_a, s->mean_dy), s->n));
}

/* B r dy - scale r^3 (A mean(dy c) + dy mean(A c)) */
static struct edge to_x(struct grad *g, const struct second *s)
{
    struct edge result = times(g, s->dy, grad_mul(g, s->b, s->r));
    if (!s->training)
        return result;
    struct edge cube = grad_mul(g, s->r, build_unary(&g->b, "Square", s->r));
    struct edge both = add(g, times(g, s->a, s->mean_dyc), times(g, s->dy, s->mean_ac));
    return subtract(g, result, times(g, both, grad_mul(g, s->scale, cube)));
}

/* -r^3 / 2 times the gradient of r: scale (covariance - 3 curvature) + B N mean(dy c) */
static struct edge to_variance(struct grad *g, const struct second *s)
{
    struct edge sum = covariance(g, s);
    if (s->training)
        sum = subtract(g, sum, grad_scale(g, 3, curvature(g, s)));
    struct edge to_r =
        add(g, grad_mul(g, s->scale, sum), grad_mul(g, s->b, by_count(g, s->mean_dyc, s->n)));
    struct edge cube = grad_mul(g, s->r, build_unary(&g->b, "Square", s->r));
    return grad_scale(g, -0.5, grad_mul(g, cube, to_r));
}

static void norm_grad_gradient(struct grad *g)
{
    struct second s;
    struct edge mean = grad_input(g, 3), variance = grad_input(g, 4), x = grad_input(g, 1);
    struct edge epsilon = build_scalar_like(&g->b, x, node_float(g->node, "epsilon"));
    s.training = node_bool(g->node, "is_training");
    s.dy = grad_input(g, 0);
    s.scale = grad_input(g, 2);
    s.r = build_unary(&g->b, "Rsqrt", add(g, variance, epsilon));
    s.c = subtract(g, x, norm_wide(g, mean));
    s.n = norm_count(g, x, s.scale);
    s.a = grad_out_or_zeros(g, 0);
    s.b = grad_out_or_zeros(g, 1);
    s.c_out = grad_out_or_zeros(g, 2);
    s.sum_a_dy = norm_reduce(g, "Sum", grad_mul(g, s.a, s.dy));
    s.mean_a = norm_reduce(g, "Mean", s.a);
    s.mean_dy = norm_reduce(g, "Mean", s.dy);
    s.mean_ac = mean_of_product(g, s.a, s.c);
    s.mean_dyc = mean_of_product(g, s.dy, s.c);
    struct edge to_scale = covariance(g, &s);
    if (s.training)
        to_scale = subtract(g, to_scale, curvature(g, &s));
    g->in[0] = to_dy(g, &s);
    g->in[1] = to_x(g, &s);
    g->in[2] = grad_mul(g, s.r, to_scale);
    g->in[3] = grad_neg(g, norm_reduce(g, "Sum", g->in[1]));
    g->in[4] = to_variance(g, &s);
}

const struct op_def op_FusedBatchNormGrad = {
    .name = "FusedBatchNormGrad",
    .inputs = "y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T",
    .outputs = "x_backprop: T, scale_backprop: T, offset_backprop: T, reserve_space_3: T, "
               "reserve_space_4: T",
    .attrs = NORM_ATTRS,
    .doc = "Gradients of FusedBatchNorm with respect to x, scale and offset.",
    .detail =
        "The reserve inputs are FusedBatchNorm's reserve outputs; the reserve outputs are empty.",
    .half = HALF_AROUND,
    .cost = cost_elements,
    .shape = norm_grad_shape,
    .gradient = norm_grad_gradient,
};
