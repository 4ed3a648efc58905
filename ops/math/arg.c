/* SPDX-License-Identifier: Apache-2.0
 *
 * Positions of extrema.
 */
#include "graph/infer.h"
#include "graph/op_cost.h"
#include "ops/lacking.h"

static int arg_shape(struct infer *infer)
{
    const struct shape *input = infer_shape(infer, 0);
    int64_t dimension;
    int axis, n = 0;
    if (infer_scalar(infer, 1))
        return infer->err->code;
    if (input->rank == SHAPE_UNKNOWN)
        return 0;
    if (!input->rank)
        return infer_fail(infer, "a scalar has no dimension to search");
    bool known = infer_value_int(infer, 1, &dimension);
    if (known && !shape_axis(dimension, input->rank, &axis))
        return infer_fail(infer, "dimension %lld is outside [%d, %d)", (long long)dimension,
                          -input->rank, input->rank);
    infer->out[0].rank = input->rank - 1;
    for (int i = 0; i < input->rank; i++)
        if (!known || i != axis)
            infer->out[0].dims[n++] = known ? input->dims[i] : SHAPE_UNKNOWN;
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
