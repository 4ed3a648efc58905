/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response normalization across channels.
 */
#include "graph/infer.h"
#include "graph/op.h"
#include "ops/math/gradients.h"

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

static void lrn_gradient(struct grad *g)
{
    struct edge inputs[] = {g->out[0], grad_input(g, 0), grad_output(g, 0)};
    g->in[0] = grad_op(g, "LRNGrad", inputs, 3);
}

/* Sums over channels c - depth_radius to c + depth_radius: a product with a band of ones. */
static struct edge neighbours(struct grad *g, struct edge x)
{
    struct build *b = &g->b;
    const int64_t last = 3, rest = -1;
    int64_t radius = node_int(g->node, "depth_radius");
    const struct tensor width = tensor_borrow(INT64, &SHAPE_SCALAR, &radius);
    struct edge shape = build_unary(b, "Shape", x), axis = build_scalar(b, INT32, 0);
    struct edge channels = build_binary(b, "Gather", shape, build_ints(b, &last, 1));
    struct edge square[] = {axis, channels, channels};
    struct edge rows[] = {axis, build_ints(b, &rest, 1), channels};
    struct edge size = build_op(b, "Concat", square, 3, NULL, 0);
    struct edge ones = build_binary(b, "Fill", size, build_scalar_like(b, x, 1));
    struct edge band[] = {ones, build_const(b, &width), build_const(b, &width)};
    struct edge matrix = build_op(b, "MatrixBandPart", band, 3, NULL, 0);
    struct edge flat = build_binary(b, "Reshape", x, build_op(b, "Concat", rows, 3, NULL, 0));
    return build_binary(b, "Reshape", build_binary(b, "MatMul", flat, matrix), shape);
}

/* z = g n^-beta - 2 alpha beta x W(g y / n), with n = bias + alpha W(x^2) and W the sum over
 * neighbours, which is its own transpose. d is the incoming gradient; u = 2 alpha beta W(d x). */
static void lrn_grad_gradient(struct grad *g)
{
    struct build *b = &g->b;
    struct edge gs = grad_input(g, 0), x = grad_input(g, 1), y = grad_input(g, 2), d = g->out[0];
    double alpha = node_float(g->node, "alpha"), beta = node_float(g->node, "beta");
    struct edge squares = neighbours(g, build_unary(b, "Square", x));
    struct edge n = build_binary(b, "Add", grad_scale(g, alpha, squares),
                                 build_scalar_like(b, x, node_float(g->node, "bias")));
    struct edge power = build_binary(b, "Pow", n, build_scalar_like(b, n, -beta));
    struct edge u = grad_scale(g, 2 * alpha * beta, neighbours(g, grad_mul(g, d, x)));
    struct edge share = grad_div(g, u, n), q = grad_div(g, grad_mul(g, gs, y), n);
    struct edge direct = grad_scale(g, -2 * alpha * beta, grad_mul(g, d, neighbours(g, q)));
    /* to n: u g y / n^2 - beta d g n^(-beta - 1) */
    struct edge to_n =
        build_binary(b, "Sub", grad_mul(g, share, q),
                     grad_scale(g, beta, grad_div(g, grad_mul(g, grad_mul(g, d, gs), power), n)));
    struct edge through = grad_scale(g, 2 * alpha, grad_mul(g, x, neighbours(g, to_n)));
    g->in[0] = build_binary(b, "Sub", grad_mul(g, d, power), grad_mul(g, share, y));
    g->in[1] = build_binary(b, "Add", direct, through);
    g->in[2] = grad_neg(g, grad_mul(g, share, gs));
}

#define LRN_ATTRS                                                                                  \
    "depth_radius: int = 5 >= 0, bias: float = 1, alpha: float = 1, beta: float = 0.5, "           \
    "T: floating = float32"

#define NORMALIZES(op, ...)                                                                        \
    const struct op_def op_##op = {                                                                \
        .name = #op, .outputs = "output: T", .attrs = LRN_ATTRS, .half = HALF_DENIED, __VA_ARGS__}

NORMALIZES(
    LRN, .inputs = "input: T",
    .doc = "Local response normalization: each element by the squares of neighbouring channels.",
    .detail = "output = input / (bias + alpha * sum of input^2 over channels c - depth_radius to\n"
              "c + depth_radius)^beta. alpha is not divided by the number of channels summed.",
    .shape = lrn_shape, .rule = "output[b,y,x,c:] = input[b,y,x,c:]", .gradient = lrn_gradient);

NORMALIZES(LRNGrad, .inputs = "input_grads: T, input_image: T, output_image: T",
           .doc = "Gradient of LRN from its input and output.", .shape = lrn_grad_shape,
           .rule = "output[b,y,x,c:] = input_grads[b,y,x,c:] input_image[b,y,x,c:] "
                   "output_image[b,y,x,c:]",
           .gradient = lrn_grad_gradient);
