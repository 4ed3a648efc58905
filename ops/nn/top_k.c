/* SPDX-License-Identifier: Apache-2.0
 *
 * The largest elements of rows.
 */
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/op_cost.h"
#include "pass/gradient/grad.h"

static int top_k_shape(struct infer *infer)
{
    int64_t k = SHAPE_UNKNOWN;
    if (infer_rank_at_least(infer, 0, 1) || infer_scalar(infer, 1))
        return infer->err->code;
    const struct shape *in = infer_shape(infer, 0);
    if (infer_value_int(infer, 1, &k) && k < 0)
        return infer_fail(infer, "k must not be negative, but is %lld", (long long)k);
    if (in->rank < 0)
        return 0;
    int64_t n = in->dims[in->rank - 1];
    if (n >= 0 && k > n)
        return infer_fail(infer, "k is %lld, but rows have %lld elements", (long long)k,
                          (long long)n);
    infer->out[0] = *in;
    infer->out[0].dims[in->rank - 1] = k;
    infer->out[1] = infer->out[0];
    return 0;
}

/* The gradient goes to the selected elements, in a flat view of the input. */
static void top_k_gradient(struct grad *g)
{
    struct build *b = &g->b;
    struct edge x = grad_input(g, 0), indices = grad_output(g, 1);
    const int64_t last = -1;
    const struct attr keep = {"keep_dims", attr_bool(true)};
    struct edge end = build_ints(b, &last, 1), size = build_unary(b, "Size", x);
    /* One start per row: the shape of the indices with 1 in the last place. */
    struct edge reduced = build_op(b, "Sum", (struct edge[]){indices, end}, 2, &keep, 1);
    struct edge range[] = {build_scalar_like(b, size, 0), build_unary(b, "Size", reduced),
                           build_scalar_like(b, size, 1)};
    struct edge rows = build_op(b, "Range", range, 3, NULL, 0);
    struct edge place =
        build_binary(b, "Sub", build_unary(b, "Rank", x), build_scalar(b, INT32, 1));
    struct edge n = build_binary(b, "Gather", build_unary(b, "Shape", x), place);
    struct edge starts = build_binary(b, "Mul", rows, n);
    starts = build_binary(b, "Reshape", starts, build_unary(b, "Shape", reduced));
    struct edge positions = build_binary(b, "Add", indices, starts);
    struct edge sum[] = {build_binary(b, "Reshape", g->out[0], end),
                         build_binary(b, "Reshape", positions, end), size};
    struct edge spread = build_op(b, "UnsortedSegmentSum", sum, 3, NULL, 0);
    g->in[0] = build_binary(b, "Reshape", spread, build_unary(b, "Shape", x));
}

static int in_top_k_shape(struct infer *infer)
{
    const struct shape *predictions = infer_shape(infer, 0);
    if (infer_rank(infer, 0, 2) || infer_vector(infer, 1))
        return infer->err->code;
    struct shape rows = shape_vector(predictions->rank == 2 ? predictions->dims[0] : -1);
    if (!shape_merge(&rows, infer_shape(infer, 1), &infer->out[0]))
        return infer_fail(infer, "predictions have %lld rows, targets %lld",
                          (long long)rows.dims[0], (long long)infer_shape(infer, 1)->dims[0]);
    return 0;
}

#define TOP_K(op, ...)                                                                             \
    const struct op_def op_##op = {.name = #op, .cost = cost_elements, __VA_ARGS__}

TOP_K(TopKV2, .inputs = "input: T, k: int32", .outputs = "values: T, indices: int32",
      .attrs = "sorted: bool = true, T: real",
      .doc = "The k largest elements of each row (the last axis), largest first, and their places.",
      .detail = "Among equals the lower index comes first. A NaN counts as larger than any number.",
      .half = HALF_CLEAR, .shape = top_k_shape, .gradient = top_k_gradient);

TOP_K(InTopK, .inputs = "predictions: P, targets: T", .outputs = "precision: bool",
      .attrs = "k: int, P: floating = float32, T: int32|int64 = int32",
      .doc = "Whether each row's target class is among the k with the largest predictions.",
      .detail =
          "Classes that tie with the k-th all count. False where the target is no class, or a\n"
          "prediction of the row is not finite.",
      .flags = OP_NO_GRADIENT, .half = HALF_DENIED, .shape = in_top_k_shape,
      .no_gradient = "its result changes in steps");
