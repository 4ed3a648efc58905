/* SPDX-License-Identifier: Apache-2.0
 *
 * The shape, rank and size of a tensor, as values.
 */
#include "graph/infer.h"
#include "graph/op_cost.h"

#define NO_GRADIENT "its result depends on shapes only"

static int shape_of_shape(struct infer *infer)
{
    const struct shape *in = infer_shape(infer, 0);
    infer->out[0] = shape_vector(in->rank < 0 ? SHAPE_UNKNOWN : in->rank);
    return 0;
}

static bool shape_value(const struct infer *infer, struct shape *value)
{
    *value = *infer_shape(infer, 0);
    return value->rank >= 0;
}

static bool size_value(const struct infer *infer, struct shape *value)
{
    const struct shape *in = infer_shape(infer, 0);
    *value = shape_vector(in->rank < 0 ? SHAPE_UNKNOWN : shape_count(in));
    return true;
}

static bool rank_value(const struct infer *infer, struct shape *value)
{
    *value = shape_vector(infer_shape(infer, 0)->rank);
    return true;
}

#define LOOKS_AT_SHAPE(op, ...)                                                                    \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .inputs = "input: T",                                           \
                                   .flags = OP_NO_GRADIENT | OP_SHAPE_ONLY,                        \
                                   .half = HALF_CLEAR,                                             \
                                   .cost = cost_view,                                              \
                                   .no_gradient = NO_GRADIENT,                                     \
                                   __VA_ARGS__}

LOOKS_AT_SHAPE(Shape, .outputs = "output: out_type",
               .attrs = "T: any, out_type: int32|int64 = int32",
               .doc = "The dimensions of a tensor, as a vector.", .value = shape_value,
               .shape = shape_of_shape);

LOOKS_AT_SHAPE(Size, .outputs = "output: out_type",
               .attrs = "T: any, out_type: int32|int64 = int32",
               .doc = "The number of elements of a tensor.", .value = size_value,
               .shape = infer_output_scalar);

LOOKS_AT_SHAPE(Rank, .outputs = "output: int32", .attrs = "T: any",
               .doc = "The number of dimensions of a tensor.", .value = rank_value,
               .shape = infer_output_scalar);
