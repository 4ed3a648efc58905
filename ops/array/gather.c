/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a table, and sums of rows by number: each the other's gradient.
 */
#include <inttypes.h>

#include "graph/op_cost.h"
#include "ops/array/build.h"
#include "ops/array/reshape.h"
#include "ops/lacking.h"

static int gather_shape(struct infer *infer)
{
    int code = infer_rank_at_least(infer, 0, 1);
    return code ? code
                : reshape_join(infer_shape(infer, 1), infer_shape(infer, 0), 1, &infer->out[0],
                               infer->err);
}

/* Builds [number of indices] and the dimensions of a row of params, as a value. */
static struct edge rows_shape(struct build *b, struct edge params)
{
    const struct shape *p = build_shape(b, params);
    bool known = p->rank > 0;
    int64_t dims[SHAPE_RANK_MAX] = {-1};
    for (int i = 1; i < p->rank; i++) {
        dims[i] = p->dims[i];
        known = known && dims[i] > 0; /* with a 0, -1 could mean anything */
    }
    if (known)
        return build_ints(b, dims, p->rank);
    return EDGE_NONE;
}

static void gather_gradient(struct grad *g)
{
    struct build *b = &g->b;
    struct edge params = grad_input(g, 0), indices = grad_input(g, 1), values = g->out[0];
    if (build_shape(b, indices)->rank != 1) {
        struct edge shape = rows_shape(b, params);
        if (!edge_exists(shape)) {
            struct edge slice[] = {build_unary(b, "Shape", params),
                                   build_ints(b, (int64_t[]){1}, 1),
                                   build_ints(b, (int64_t[]){-1}, 1)};
            struct edge expand[] = {build_unary(b, "Size", indices), build_scalar(b, INT32, 0)};
            struct edge parts[] = {build_scalar(b, INT32, 0),
                                   build_op(b, "ExpandDims", expand, 2, NULL, 0),
                                   build_op(b, "Slice", slice, 3, NULL, 0)};
            shape = build_op(b, "Concat", parts, 3, NULL, 0);
        }
        values = build_binary(b, "Reshape", values, shape);
        indices = array_flatten(b, indices);
    }
    g->in[0] = values;
    g->in_indices[0] = indices;
}

const struct op_def op_Gather = {
    .name = "Gather",
    .inputs = "params: Tparams, indices: Tindices",
    .outputs = "output: Tparams",
    .attrs = "Tparams: numeric|bool, Tindices: int32|int64, validate_indices: bool = true",
    .doc = "Rows of params (its slices along dimension 0), by their numbers.",
    .detail = "The result has the shape of indices, followed by that of a row. An index outside "
              "of params is an error."
              "\n" NO_STRINGS,
    .rule = "output[i...,r...] = params[<indices>,r...] indices[i...]",
    .half = HALF_INFERRED,
    .cost = cost_picked,
    .shape = gather_shape,
    .gradient = gather_gradient,
};

static int segment_shape(struct infer *infer)
{
    const struct shape *data = infer_shape(infer, 0), *ids = infer_shape(infer, 1);
    int64_t n = SHAPE_UNKNOWN;
    int code = infer_scalar(infer, 2);
    if (infer_value_int(infer, 2, &n) && n < 0)
        return infer_fail(infer, "num_segments is negative: %" PRId64, n);
    if (code || ids->rank < 0 || data->rank < 0)
        return code;
    if (!reshape_begins(data, ids))
        return infer_fail(infer, "the shape of segment_ids, %s, does not begin that of data, %s",
                          shape_text(ids), shape_text(data));
    const struct shape rows = shape_vector(n);
    return reshape_join(&rows, data, ids->rank, &infer->out[0], infer->err);
}

static void segment_gradient(struct grad *g)
{
    g->in[0] = build_binary(&g->b, "Gather", g->out[0], grad_input(g, 1));
}

const struct op_def op_UnsortedSegmentSum = {
    .name = "UnsortedSegmentSum",
    .inputs = "data: T, segment_ids: Tindices, num_segments: int32",
    .outputs = "output: T",
    .attrs = "T: real, Tindices: int32|int64",
    .doc = "Sums of the rows of data that have the same number.",
    .detail = "Row i of the result is the sum of data[j] over all j with segment_ids[j] = i, 0 if "
              "there is none. A number outside [0, num_segments) is an error."
              "\n" NO_COMPLEX " Indices are not of int16.",
    .rule = "output[<segment_ids>,r...] += data[i...,r...] segment_ids[i...]",
    .half = HALF_DENIED,
    .shape = segment_shape,
    .gradient = segment_gradient,
};
