/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradient of batch normalization, and the gradient of that.
 */
#include "graph/op_cost.h"
#include "ops/nn/batch_norm.h"

int norm_per_channel(struct infer *infer, int image, int first, int end, struct shape *channels)
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

static int norm_grad_shape(struct infer *infer)
{
    struct shape channels;
    if (infer_merge(infer, 0, 1, &infer->out[0]) || norm_per_channel(infer, 1, 2, 5, &channels))
        return infer->err->code;
    infer->out[1] = infer->out[2] = channels;
    infer->out[3] = infer->out[4] = shape_vector(0);
    return 0;
}

/* ---- words ---- */

struct edge norm_wide(struct grad *g, struct edge vector)
{
    const int64_t shape[] = {-1, 1, 1};
    if (!format_is_nchw(g->node))
        return vector;
    return build_binary(&g->b, "Reshape", vector, build_ints(&g->b, shape, 3));
}

struct edge norm_spread(struct grad *g, struct edge vector, struct edge image)
{
    struct edge zeros = build_unary(&g->b, "ZerosLike", image);
    return build_binary(&g->b, "Add", zeros, norm_wide(g, vector));
}

struct edge norm_reduce(struct grad *g, const char *op, struct edge image)
{
    const int64_t nhwc[] = {0, 1, 2}, nchw[] = {0, 2, 3};
    return build_binary(&g->b, op, image,
                        build_ints(&g->b, format_is_nchw(g->node) ? nchw : nhwc, 3));
}

static struct edge element_count(struct grad *g, struct edge x)
{
    return grad_cast(g, build_unary(&g->b, "Size", x), grad_count_type(g, x));
}

struct edge norm_count(struct grad *g, struct edge image, struct edge vector)
{
    return grad_div(g, element_count(g, image), element_count(g, vector));
}

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
