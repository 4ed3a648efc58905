/* SPDX-License-Identifier: Apache-2.0
 *
 * Positions of extrema.
 */
#include "graph/infer.h"
#include "graph/op_cost.h"

static int arg_shape(struct infer *infer)
{
    const struct shape *input = infer_shape(infer, 0);
    struct shape *out = &infer->out[0];
    int axis;
    if (input->rank == 0)
        return infer_fail(infer, "a scalar has no dimension to search");
    if (infer_axis(infer, 1, input->rank, &axis))
        return infer->err->code;
    if (input->rank == SHAPE_UNKNOWN)
        return 0;
    *out = axis < 0 ? shape_unknown(input->rank - 1) : SHAPE_SCALAR;
    for (int i = 0; axis >= 0 && i < input->rank; i++)
        if (i != axis)
            out->dims[out->rank++] = input->dims[i];
    return 0;
}

#define POSITION                                                                                   \
    .inputs = "input: T, dimension: Tidx", .outputs = "output: output_type",                       \
    .attrs = "T: real|bool, Tidx: int32|int64 = int32, output_type: int32|int64 = int64",          \
    .shape = arg_shape

#define ARG(op, ...)                                                                               \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   POSITION,                                                       \
                                   .half = HALF_CLEAR,                                             \
                                   .cost = cost_elements,                                          \
                                   .no_gradient = "its result changes in steps",                   \
                                   __VA_ARGS__}

ARG(ArgMax, .doc = "The position of the largest element along a dimension.",
    .detail =
        "The first of equal ones; the first NaN if there is any. A dimension without elements "
        "is an error."
        "\n"
        "Dimension and output are of integers of at least 32 bits, not of int16 or uint16.");

ARG(ArgMin, .doc = "The position of the smallest element along a dimension.",
    .detail =
        "The first of equal ones; the first NaN if there is any. A dimension without elements "
        "is an error.");
