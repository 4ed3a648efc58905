/* SPDX-License-Identifier: Apache-2.0
 *
 * The same elements seen with another shape.
 */
#include "ops/array/reshape.h"
#include "graph/op_cost.h"

#include <inttypes.h>

#include "ops/array/build.h"

int reshape_read(const struct tensor *dims, struct shape *shape, struct error *err)
{
    int64_t n = tensor_count(dims);
    if (n > SHAPE_RANK_MAX)
        return error_set(err, ERR_DATA,
                         "a shape of %" PRId64 " dimensions: at most %d are possible", n,
                         SHAPE_RANK_MAX);
    shape->rank = (int)n;
    for (int i = 0; i < shape->rank; i++) {
        shape->dims[i] = tensor_get_int64(dims, i);
        if (shape->dims[i] < -1)
            return error_set(err, ERR_DATA, "dimension %d of the shape is %" PRId64, i,
                             shape->dims[i]);
    }
    return 0;
}

static int mismatch(const struct shape *in, const struct shape *wanted, struct error *err)
{
    return error_set(err, ERR_DATA, "%" PRId64 " elements of shape %s do not fit shape %s",
                     shape_count(in), shape_text(in), shape_text(wanted));
}

/* `wanted` may have one dimension of -1, which is computed from the number of elements of `in`,
 * whose shape is known. If it has dimensions of 0, those of both shapes are not counted: [0,4,3] as
 * [0,-1] is [0,12]. */
static int reshape_resolve(const struct shape *in, const struct shape *wanted, struct shape *out,
                           struct error *err)
{
    int64_t count = shape_count(in), product = 1;
    bool is_empty = false;
    int open = -1;
    for (int i = 0; i < wanted->rank; i++)
        is_empty |= !wanted->dims[i];
    for (int i = 0; i < wanted->rank; i++) {
        if (wanted->dims[i] < 0 && open >= 0)
            return error_set(err, ERR_DATA,
                             "only one dimension of the shape may be -1: %d and %d are", open, i);
        if (wanted->dims[i] < 0)
            open = i;
        else if (wanted->dims[i] && __builtin_mul_overflow(product, wanted->dims[i], &product))
            return mismatch(in, wanted, err);
    }
    *out = *wanted;
    if (is_empty ? count != 0 : open < 0 && product != count)
        return mismatch(in, wanted, err);
    if (open < 0)
        return 0;
    if (is_empty)
        count = 1;
    for (int i = 0; is_empty && i < in->rank; i++)
        if (in->dims[i] && __builtin_mul_overflow(count, in->dims[i], &count))
            return mismatch(in, wanted, err);
    if (count % product != 0)
        return mismatch(in, wanted, err);
    out->dims[open] = count / product;
    return 0;
}

int reshape_insert(const struct shape *in, int64_t axis, int64_t dim, const char *name,
                   struct shape *out, struct error *err)
{
    int at;
    if (!shape_axis(axis, in->rank + 1, &at))
        return error_set(err, ERR_DATA, "%s %" PRId64 " is outside [%d, %d]", name, axis,
                         -in->rank - 1, in->rank);
    if (in->rank == SHAPE_RANK_MAX)
        return error_set(err, ERR_DATA, "the result would have more than %d dimensions",
                         SHAPE_RANK_MAX);
    out->rank = in->rank + 1;
    for (int i = 0; i < out->rank; i++)
        out->dims[i] = i < at ? in->dims[i] : i == at ? dim : in->dims[i - 1];
    return 0;
}

int reshape_join(const struct shape *head, const struct shape *tail, int from, struct shape *out,
                 struct error *err)
{
    *out = SHAPE_ANY;
    if (head->rank < 0 || tail->rank < 0)
        return 0;
    if (head->rank + tail->rank - from > SHAPE_RANK_MAX)
        return error_set(err, ERR_DATA, "the result would have more than %d dimensions",
                         SHAPE_RANK_MAX);
    *out = *head;
    for (int i = from; i < tail->rank; i++)
        out->dims[out->rank++] = tail->dims[i];
    return 0;
}

bool reshape_begins(const struct shape *shape, const struct shape *head)
{
    struct shape start = *shape;
    start.rank = head->rank < shape->rank ? head->rank : shape->rank;
    return head->rank <= shape->rank && shape_compatible(&start, head);
}

/* ---- Reshape ---- */

/* Reshapes a partly unknown shape: the open dimension can still be found if it is the only unknown,
 * unless another is 0, as it may be anything then. */
static int reshape_partly(struct infer *infer, const struct shape *wanted)
{
    const struct shape *in = infer_shape(infer, 0);
    int open = 0;
    bool empty = false;
    for (int i = 0; i < wanted->rank; i++) {
        open += wanted->dims[i] < 0;
        empty = empty || wanted->dims[i] == 0;
    }
    if (shape_count(in) >= 0 && (!open || (open == 1 && !empty)))
        return reshape_resolve(in, wanted, &infer->out[0], infer->err);
    infer->out[0] = *wanted;
    return 0;
}

static int reshape_shape(struct infer *infer)
{
    struct shape wanted;
    const struct tensor *value = infer_value(infer, 1);
    int code = infer_vector(infer, 1);
    if (code)
        return code;
    if (value) {
        code = reshape_read(value, &wanted, infer->err);
        if (!code && shape_is_known(infer_shape(infer, 0)))
            return reshape_resolve(infer_shape(infer, 0), &wanted, &infer->out[0], infer->err);
        return code ? code : reshape_partly(infer, &wanted);
    }
    if (infer_value_shape(infer, 1, &wanted))
        return reshape_partly(infer, &wanted);
    const struct shape *dims = infer_shape(infer, 1);
    if (dims->rank == 1 && dims->dims[0] > SHAPE_RANK_MAX)
        return infer_fail(infer, "a shape of %" PRId64 " dimensions: at most %d are possible",
                          dims->dims[0], SHAPE_RANK_MAX);
    return 0;
}

static void like_input(struct grad *g)
{
    g->in[0] = array_reshape_like(&g->b, g->out[0], grad_input(g, 0));
}

#define RESHAPED(op, ...)                                                                          \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .outputs = "output: T",                                         \
                                   .half = HALF_CLEAR,                                             \
                                   .cost = cost_view,                                              \
                                   .gradient = like_input,                                         \
                                   __VA_ARGS__}

RESHAPED(
    Reshape, .inputs = "tensor: T, shape: Tshape", .attrs = "T: any, Tshape: int32|int64 = int32",
    .doc = "The elements of a tensor in another shape, in the same order.",
    .detail =
        "One dimension of the shape may be -1: it becomes what is left. Beside a 0 it is what is\n"
        "left of the dimensions that are not 0: [0,4,3] as [0,-1] is [0,12].",
    .flags = OP_VIEW | OP_IDEMPOTENT, .shape = reshape_shape);

/* ---- ExpandDims, Squeeze ---- */

static int expand_shape(struct infer *infer)
{
    int64_t axis;
    const struct shape *in = infer_shape(infer, 0), *dim = infer_shape(infer, 1);
    if (shape_is_known(dim) && shape_count(dim) != 1)
        return infer_fail(infer, "dim must be one number, not %s", shape_text(dim));
    if (in->rank == SHAPE_UNKNOWN)
        return 0;
    if (infer_value_int(infer, 1, &axis))
        return reshape_insert(in, axis, 1, "dim", &infer->out[0], infer->err);
    if (in->rank < SHAPE_RANK_MAX)
        infer->out[0] = shape_unknown(in->rank + 1);
    return 0;
}

RESHAPED(ExpandDims, .inputs = "input: T, dim: Tdim", .attrs = "T: any, Tdim: int32|int64 = int32",
         .doc = "A tensor with a dimension of 1 inserted at an index.",
         .detail = "dim lies in [-1-rank, rank]; -1 appends.", .flags = OP_VIEW,
         .value = infer_value_unchanged, .shape = expand_shape);

/* Listed unknown dimensions count as 1. If none is listed and some are unknown, so is the rank. */
static int squeeze_shape(struct infer *infer)
{
    const struct attr_value *dims = node_attr(infer->node, "squeeze_dims");
    const struct shape *in = infer_shape(infer, 0);
    bool remove[SHAPE_RANK_MAX] = {false};
    if (in->rank == SHAPE_UNKNOWN)
        return 0;
    for (int k = 0; k < dims->n; k++) {
        int at;
        if (!shape_axis(dims->ints[k], in->rank, &at))
            return infer_fail(infer, "dim %" PRId64 " is outside [%d, %d)", dims->ints[k],
                              -in->rank, in->rank);
        if (in->dims[at] != 1 && in->dims[at] != SHAPE_UNKNOWN)
            return infer_fail(infer, "dimension %d of %s is not 1", at, shape_text(in));
        remove[at] = true;
    }
    if (!dims->n && !shape_is_known(in))
        return 0;
    infer->out[0] = SHAPE_SCALAR;
    for (int i = 0; i < in->rank; i++)
        if (dims->n ? !remove[i] : in->dims[i] != 1)
            infer->out[0].dims[infer->out[0].rank++] = in->dims[i];
    return 0;
}

RESHAPED(Squeeze, .inputs = "input: T", .attrs = "T: any, squeeze_dims: list(int) = []",
         .doc = "A tensor without dimensions of 1: those listed, or all.",
         .detail = "A listed dimension that is not 1 is an error.", .flags = OP_VIEW,
         .value = infer_value_unchanged, .shape = squeeze_shape);
