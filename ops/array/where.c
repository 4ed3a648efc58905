/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops whose results' length depends on the data.
 */
#include "graph/infer.h"
#include "graph/op_cost.h"
#include "ops/lacking.h"

static int where_shape(struct infer *infer)
{
    int rank = infer_shape(infer, 0)->rank;
    infer->out[0] = shape_matrix(SHAPE_UNKNOWN, rank < 0 ? SHAPE_UNKNOWN : rank);
    return 0;
}

const struct op_def op_Where = {
    .name = "Where",
    .inputs = "input: T",
    .outputs = "index: int64",
    .attrs = "T: numeric|bool = bool",
    .doc = "The coordinates of the elements that are true, one row each, in row-major order.",
    .detail = "Of numbers, those that are not 0, NaN among them.",
    .flags = OP_NO_GRADIENT | OP_SHAPED_BY_DATA,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .shape = where_shape,
    .no_gradient = "its result is made of numbers of elements",
};

static int unique_shape(struct infer *infer)
{
    infer->out[0] = shape_vector(SHAPE_UNKNOWN);
    infer->out[1] = *infer_shape(infer, 0);
    return infer_vector(infer, 0);
}

const struct op_def op_Unique = {
    .name = "Unique",
    .inputs = "x: T",
    .outputs = "y: T, idx: out_idx",
    .attrs = "T: real|bool, out_idx: int32|int64 = int32",
    .doc = "The different elements of a vector, in the order of their first occurrence.",
    .detail = "x[i] = y[idx[i]]. 0.0 and -0.0 are equal; every NaN is an element of its own."
              "\n" NO_COMPLEX_OR_STRINGS,
    .flags = OP_NO_GRADIENT | OP_SHAPED_BY_DATA,
    .rule = "y[k], idx[i] = x[i]",
    .half = HALF_KEPT,
    .shape = unique_shape,
    .no_gradient = "which elements are equal changes in steps",
};
