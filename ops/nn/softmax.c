/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and the cross entropies built on it.
 */
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/op_cost.h"
#include "pass/gradient/grad.h"

static int softmax_shape(struct infer *infer)
{
    if (infer_rank_at_least(infer, 0, 1))
        return infer->err->code;
    infer->out[0] = *infer_shape(infer, 0);
    return 0;
}

static struct edge sum_rows(struct build *b, struct edge x)
{
    const struct attr keep = {"keep_dims", attr_bool(true)};
    const int64_t last = -1;
    struct edge inputs[] = {x, build_ints(b, &last, 1)};
    return build_op(b, "Sum", inputs, 2, &keep, 1);
}

/* (d - sum(d y)) y, with y the softmax. */
static struct edge through_softmax(struct build *b, struct edge d, struct edge y)
{
    struct edge sum = sum_rows(b, build_binary(b, "Mul", d, y));
    return build_binary(b, "Mul", build_binary(b, "Sub", d, sum), y);
}

static void softmax_gradient(struct grad *g)
{
    g->in[0] = through_softmax(&g->b, g->out[0], grad_output(g, 0));
}

/* d - sum(d) exp(y) */
static void log_softmax_gradient(struct grad *g)
{
    struct build *b = &g->b;
    struct edge y = build_unary(b, "Exp", grad_output(g, 0));
    struct edge part = build_binary(b, "Mul", sum_rows(b, g->out[0]), y);
    g->in[0] = build_binary(b, "Sub", g->out[0], part);
}

static int cross_entropy_shape(struct infer *infer)
{
    const struct shape *features = infer_shape(infer, 0), *labels = infer_shape(infer, 1);
    struct shape both = {2, {SHAPE_UNKNOWN, SHAPE_UNKNOWN}};
    if (features->rank >= 0 && labels->rank >= 0 &&
        (!shape_broadcast(features, labels, &both) || both.rank != 2))
        return infer_fail(infer, "features and labels must broadcast to a matrix, not %s and %s",
                          shape_text(features), shape_text(labels));
    infer->out[0] = shape_vector(both.dims[0]);
    infer->out[1] = both;
    return 0;
}

static int sparse_cross_entropy_shape(struct infer *infer)
{
    const struct shape *features = infer_shape(infer, 0), *labels = infer_shape(infer, 1);
    if (infer_rank(infer, 0, 2) || infer_vector(infer, 1))
        return infer->err->code;
    struct shape rows = shape_vector(features->rank == 2 ? features->dims[0] : SHAPE_UNKNOWN);
    if (!shape_merge(&rows, labels, &infer->out[0]))
        return infer_fail(infer, "features have %lld rows, labels %lld", (long long)rows.dims[0],
                          (long long)labels->dims[0]);
    infer->out[1] = *features;
    return 0;
}

/* Returns the gradient of features of output 1's shape. Output 1 is softmax - labels, which adds a
 * second-order term. */
static struct edge through_entropy(struct grad *g, struct edge features)
{
    struct build *b = &g->b;
    struct edge total = EDGE_NONE;
    if (edge_exists(g->out[0])) {
        /* The gradient of the loss times `backprop`, row by row. */
        const int64_t last = -1;
        struct edge inputs[] = {g->out[0], build_ints(&g->b, &last, 1)};
        struct edge column = build_op(&g->b, "ExpandDims", inputs, 2, NULL, 0);
        total = build_binary(&g->b, "Mul", column, grad_output(g, 1));
    }
    if (edge_exists(g->out[1])) {
        struct edge y = build_unary(b, "Softmax", features);
        struct edge second = through_softmax(b, g->out[1], y);
        total = edge_exists(total) ? build_binary(b, "Add", total, second) : second;
    }
    return total;
}

static void cross_entropy_gradient(struct grad *g)
{
    struct build *b = &g->b;
    struct edge features = grad_input(g, 0);
    if (edge_exists(g->out[1]) &&
        !(shape_is_known(build_shape(b, features)) &&
          shape_equal(build_shape(b, features), build_shape(b, grad_output(g, 1))))) {
        struct edge zeros = build_unary(b, "ZerosLike", grad_output(g, 1));
        features = build_binary(b, "Add", features, zeros); /* broadcasts the features */
    }
    g->in[0] = grad_unbroadcast(g, through_entropy(g, features), 0, 1);
}

static void sparse_cross_entropy_gradient(struct grad *g)
{
    g->in[0] = through_entropy(g, grad_input(g, 0));
}

#define OF_ROWS(op, ...)                                                                           \
    const struct op_def op_##op = {                                                                \
        .name = #op, .half = HALF_DENIED, .cost = cost_functions, __VA_ARGS__}

OF_ROWS(Softmax, .inputs = "logits: T", .outputs = "softmax: T", .attrs = "T: floating",
        .doc = "exp(x) / sum(exp(x)) along the last axis, without overflow.",
        .shape = softmax_shape, .gradient = softmax_gradient);

OF_ROWS(LogSoftmax, .inputs = "logits: T", .outputs = "logsoftmax: T", .attrs = "T: floating",
        .doc = "Logarithm of the softmax along the last axis: x - ln(sum(exp(x))).",
        .shape = softmax_shape, .gradient = log_softmax_gradient);

OF_ROWS(SoftmaxCrossEntropyWithLogits, .inputs = "features: T, labels: T",
        .outputs = "loss: T, backprop: T", .attrs = "T: floating",
        .doc = "Cross entropy between label distributions and the softmax of logits, one per row.",
        .detail =
            "loss = -sum(labels * logsoftmax(features)); backprop = softmax(features) - labels,\n"
            "which is the gradient of the loss. features and labels broadcast to a matrix: a\n"
            "row of one belongs to all rows of the other. There is no gradient to the labels.",
        .shape = cross_entropy_shape, .gradient = cross_entropy_gradient);

OF_ROWS(SparseSoftmaxCrossEntropyWithLogits, .inputs = "features: T, labels: Tlabels",
        .outputs = "loss: T, backprop: T", .attrs = "T: floating, Tlabels: int32|int64 = int64",
        .doc = "Cross entropy between class numbers and the softmax of logits, one per row.",
        .detail = "A label outside [0, classes) is an error.", .shape = sparse_cross_entropy_shape,
        .gradient = sparse_cross_entropy_gradient);
