/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/infer.h"
#include "graph/op_cost.h"

static int broadcast_args_shape(struct infer *infer)
{
    if (infer_vector(infer, 0) || infer_vector(infer, 1))
        return infer->err->code;
    infer->out[0] = infer->out[1] = shape_vector(SHAPE_UNKNOWN);
    return 0;
}

const struct op_def op_BroadcastGradientArgs = {
    .name = "BroadcastGradientArgs",
    .inputs = "s0: T, s1: T",
    .outputs = "r0: T, r1: T",
    .attrs = "T: int32|int64 = int32",
    .cost = cost_elements,
    .shape = broadcast_args_shape,
    .flags = OP_NO_GRADIENT | OP_SHAPED_BY_DATA,
    .doc = "The axes over which gradients are summed after two shapes were broadcast.",
    .detail = "s0 and s1 are shapes; r0 and r1 the axes of the result that are repeated for each.",
    .no_gradient = "its result depends on shapes only",
};
