/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions over axes: declarations and shapes. Gradients: reduce_grad.c.
 */
#include "graph/infer.h"
#include "ops/lacking.h"
#include "ops/math/reduce_grad.h"
#include "ops/math/results.h"

int reduce_axes(const struct tensor *indices, int rank, unsigned *axes, struct error *err)
{
    *axes = 0;
    if (indices->shape.rank > 1)
        return error_set(err, ERR_DATA, "reduction_indices must be a scalar or a vector, not %s",
                         shape_text(&indices->shape));
    for (int64_t i = 0; i < tensor_count(indices); i++) {
        int axis;
        int64_t value = tensor_get_int64(indices, i);
        if (!shape_axis(value, rank, &axis))
            return error_set(err, ERR_DATA, "axis %lld is outside [%d, %d)", (long long)value,
                             -rank, rank);
        if (*axes & 1u << axis)
            return error_set(err, ERR_DATA, "axis %lld is named twice", (long long)value);
        *axes |= 1u << axis;
    }
    return 0;
}

struct shape reduce_shape(const struct shape *input, unsigned axes, bool keep_dims)
{
    struct shape shape = {0};
    for (int axis = 0; axis < input->rank; axis++) {
        bool reduced = axes & 1u << axis;
        if (!reduced || keep_dims)
            shape.dims[shape.rank++] = reduced ? 1 : input->dims[axis];
    }
    return shape;
}

static int reduction_shape(struct infer *infer)
{
    const struct shape *input = infer_shape(infer, 0), *indices = infer_shape(infer, 1);
    const struct tensor *value = infer_value(infer, 1);
    bool keep_dims = node_bool(infer->node, "keep_dims");
    unsigned axes;
    if (indices->rank > 1)
        return infer_fail(infer, "reduction_indices must be a scalar or a vector, not %s",
                          shape_text(indices));
    if (input->rank == SHAPE_UNKNOWN)
        return 0;
    if (!value) {
        infer->out[0] = keep_dims ? shape_unknown(input->rank) : SHAPE_ANY;
        return 0;
    }
    if (reduce_axes(value, input->rank, &axes, infer->err))
        return infer->err->code;
    infer->out[0] = reduce_shape(input, axes, keep_dims);
    return 0;
}

/* A sum of one element is 0 + x, which turns -0 into 0. */
#define NO_AXES(types)                                                                             \
    {                                                                                              \
        SAME_EMPTY, 0, types, "reduces no axis"                                                    \
    }
#define AXES                                                                                       \
    "reduction_indices is a scalar or a vector of axes, counted from the end when negative; an "   \
    "empty vector reduces nothing. With keep_dims the reduced axes stay, with length 1."

#define REDUCES(op, sign, ...)                                                                     \
    const struct op_def op_##op = {                                                                \
        .name = #op,                                                                               \
        .inputs = "input: T, reduction_indices: Tidx",                                             \
        .outputs = "output: T",                                                                    \
        .attrs = "keep_dims: bool = false, T: real, Tidx: int32|int64 = int32",                    \
        .shape = reduction_shape,                                                                  \
        .rule = "output[-reduction_indices] " sign " input[...]",                                  \
        __VA_ARGS__}

REDUCES(Sum, "+=", .doc = "The sum of the elements along axes.",
        .detail = AXES " The sum of no elements is 0."
                       "\n" NO_COMPLEX,
        .identity = NO_AXES(DTYPES_INTEGER), .half = HALF_DENIED, .gradient = reduce_sum_gradient);

REDUCES(Mean, "mean=", .doc = "The mean of the elements along axes.",
        .detail = AXES
        " The mean of no elements is NaN, of integers an error; a mean of integers is "
        "cut toward zero."
        "\n" NO_COMPLEX,
        .identity = NO_AXES(DTYPES_INTEGER), .half = HALF_DENIED, .gradient = reduce_mean_gradient);

REDUCES(Prod, "*=", .doc = "The product of the elements along axes.",
        .detail = AXES " The product of no elements is 1."
                       "\n" NO_COMPLEX,
        .identity = NO_AXES(DTYPES_INTEGER), .half = HALF_DENIED, .gradient = reduce_prod_gradient);

REDUCES(Max, "max=", .doc = "The largest element along axes.",
        .detail = AXES
        " A NaN is the result wherever there is one. Of no elements: minus infinity, or "
        "the smallest integer. Elements equal to the result share its gradient evenly.",
        .identity = NO_AXES(0), .half = HALF_CLEAR, .gradient = reduce_extremum_gradient);

REDUCES(Min, "min=", .doc = "The smallest element along axes.",
        .detail = AXES
        " A NaN is the result wherever there is one. Of no elements: infinity, or the "
        "largest integer. Elements equal to the result share its gradient evenly.",
        .identity = NO_AXES(0), .half = HALF_CLEAR, .gradient = reduce_extremum_gradient);

#define REDUCES_TRUTH(op, sign, ...)                                                               \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .inputs = "input: bool, reduction_indices: Tidx",               \
                                   .outputs = "output: bool",                                      \
                                   .attrs = "keep_dims: bool = false, Tidx: int32|int64 = int32",  \
                                   .flags = OP_NO_GRADIENT,                                        \
                                   .rule = "output[-reduction_indices] " sign " input[...]",       \
                                   .identity = NO_AXES(0),                                         \
                                   .shape = reduction_shape,                                       \
                                   .no_gradient = "its result changes in steps",                   \
                                   __VA_ARGS__}

REDUCES_TRUTH(All, "all=", .doc = "Whether all elements along axes are true.",
              .detail = AXES " Of no elements: true.");

REDUCES_TRUTH(Any, "any=", .doc = "Whether any element along axes is true.",
              .detail = AXES " Of no elements: false.");
