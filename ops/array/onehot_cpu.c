/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ops/array/strided.h"
#include "ops/array/strided_kernels.h"
#include "ops/math/outputs.h"

static int onehot_run(struct kernel_call *call)
{
    const struct tensor *indices = call->in[0];
    struct tensor *out = result_outputs_sized(call, 1, 2);
    int at;
    if (!out)
        return call->err->code;
    shape_axis(*(const int64_t *)call->state, out->shape.rank, &at);
    int64_t depth = out->shape.dims[at], n = tensor_count(indices);
    int64_t inner = shape_count_of(&out->shape, at + 1, out->shape.rank);
    size_t item = dtype_bytes(out->type);
    strided_fill(call, out, call->in[3]->data);
    for (int64_t i = 0; i < n; i++) {
        int64_t index = tensor_get_int64(indices, i);
        if (index >= 0 && index < depth)
            memcpy((char *)out->data +
                       (size_t)((i / inner * depth + index) * inner + i % inner) * item,
                   call->in[2]->data, item);
    }
    return KERNEL_DONE;
}

const struct kernel_code kernel_one_hot = {.prepare = prepare_axis, .run = onehot_run};
