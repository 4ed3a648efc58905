/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors whose elements are all the same.
 */
#include "graph/op_cost.h"
#include "ops/array/build.h"
#include "ops/lacking.h"

/* ---- Fill, ZerosLike, OnesLike ---- */

static int fill_shape(struct infer *infer)
{
    int code = infer_dims(infer, 0, &infer->out[0]);
    return code ? code : infer_scalar(infer, 1);
}

static void fill_gradient(struct grad *g)
{
    struct build *b = &g->b;
    int rank = build_shape(b, g->out[0])->rank;
    int64_t axes[SHAPE_RANK_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct edge all = EDGE_NONE;
    if (rank >= 0) {
        all = build_ints(b, axes, rank);
    } else {
        struct edge range[] = {build_scalar(b, INT32, 0), build_unary(b, "Rank", g->out[0]),
                               build_scalar(b, INT32, 1)};
        all = build_op(b, "Range", range, 3, NULL, 0);
    }
    g->in[1] = build_binary(b, "Sum", g->out[0], all);
}

const struct op_def op_Fill = {
    .name = "Fill",
    .inputs = "dims: index_type, value: T",
    .outputs = "output: T",
    .attrs = "T: numeric|bool, index_type: int32|int64 = int32",
    .doc = "A tensor of a given shape whose elements all are the value.",
    .detail = NO_STRINGS,
    .rule = "output[...] = dims# value[]",
    .half = HALF_CLEAR,
    .cost = cost_made,
    .shape = fill_shape,
    .gradient = fill_gradient,
};

#define CONSTANT_LIKE(op, ...)                                                                     \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .inputs = "x: T",                                               \
                                   .outputs = "y: T",                                              \
                                   .attrs = "T: numeric|bool",                                     \
                                   .flags = OP_NO_GRADIENT | OP_SHAPE_ONLY,                        \
                                   .rule = "each",                                                 \
                                   .half = HALF_CLEAR,                                             \
                                   .cost = cost_made,                                              \
                                   .shape = infer_unchanged,                                       \
                                   .no_gradient = "its result depends on shapes only",             \
                                   __VA_ARGS__}

CONSTANT_LIKE(ZerosLike, .doc = "Zeros (false) with the shape and type of x.",
              .detail = NO_STRINGS);

CONSTANT_LIKE(OnesLike, .doc = "Ones (true) with the shape and type of x.");
