/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/array/results.h"

#include "exec/device/step_block.h"
#include "ops/array/args.h"
#include "ops/array/reshape.h"

int result_of_one_hot(struct kernel_call *call, int64_t axis, struct shape *shape, int *at)
{
    const struct shape *in = &call->in[0]->shape;
    int64_t depth = 0;
    if (args_scalar(call, 1, "depth", &depth))
        return call->err->code;
    if (depth < 0)
        return kernel_fail(call, "depth is negative: %" PRId64, depth);
    if (tensor_count(call->in[2]) != 1 || tensor_count(call->in[3]) != 1)
        return kernel_fail(call, "on_value and off_value must be scalars");
    if (reshape_insert(in, axis, depth, "axis", shape, call->err))
        return call->err->code;
    shape_axis(axis, shape->rank, at);
    return 0;
}

int rows_check(struct kernel_call *call, int input, int64_t n)
{
    const struct tensor *indices = call->in[input];
    int64_t count = tensor_count(indices);
    const int32_t *i32 = indices->data;
    const int64_t *i64 = indices->data;
    for (int64_t i = 0; i < count; i++) {
        int64_t index = indices->type == INT64 ? i64[i] : i32[i];
        if (index < 0 || index >= n)
            return kernel_fault(call, &(struct fault){.code = FAULT_INDEX,
                                                      .input = (uint16_t)input,
                                                      .at = i,
                                                      .value = index,
                                                      .limit = n});
    }
    return 0;
}
