/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ops/array/results.h"
#include "ops/array/strided.h"
#include "ops/array/strided_kernels.h"

static int onehot_run(struct kernel_call *call)
{
    const struct tensor *indices = call->in[0];
    struct shape shape;
    int at;
    if (result_of_one_hot(call, *(const int64_t *)call->state, &shape, &at))
        return call->err->code;
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    int64_t depth = shape.dims[at], n = tensor_count(indices);
    int64_t inner = shape_count_of(&shape, at + 1, shape.rank);
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
