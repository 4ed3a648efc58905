/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "graph/infer.h"
#include "graph/op_cost.h"
#include "ops/array/reshape.h"
#include "ops/lacking.h"

static int onehot_shape(struct infer *infer)
{
    const struct shape *in = infer_shape(infer, 0);
    int64_t depth = SHAPE_UNKNOWN, axis = node_int(infer->node, "axis");
    if (infer_scalars(infer, 1, 4))
        return infer->err->code;
    if (infer_value_int(infer, 1, &depth) && depth < 0)
        return infer_fail(infer, "depth is negative: %" PRId64, depth);
    if (in->rank < 0)
        return 0;
    return reshape_insert(in, axis, depth, "axis", &infer->out[0], infer->err);
}

const struct op_def op_OneHot = {
    .name = "OneHot",
    .inputs = "indices: TI, depth: int32, on_value: T, off_value: T",
    .outputs = "output: T",
    .attrs = "T: numeric|bool, TI: int8|uint8|int32|int64, axis: int = -1",
    .doc = "For each index a vector that is on there and off elsewhere.",
    .detail = "The vectors lie along a new dimension at axis, of length depth. An index outside "
              "[0, depth) gives a vector that is off everywhere."
              "\n" NO_STRINGS,
    .flags = OP_NO_GRADIENT,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .shape = onehot_shape,
    .no_gradient = "its indices are whole numbers",
};
