/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "ops/math/outputs.h"

static int offset_run(struct kernel_call *call)
{
    int axis, rank = (int)tensor_count(call->in[1]);
    int32_t offset = 0;
    if (!result_outputs(call, 0, 0))
        return call->err->code;
    int64_t dim = tensor_get_int64(call->in[0], 0);
    if (!shape_axis(dim, rank, &axis))
        return kernel_fail(call, "concat_dim %" PRId64 " is outside [%d, %d)", dim, -rank, rank);
    const int32_t *first = call->in[1]->data;
    for (int i = 0; i < call->n_out; i++) {
        const int32_t *dims = call->in[i + 1]->data;
        if (tensor_count(call->in[i + 1]) != rank)
            return kernel_fail(call, "shapes must have the same rank, not %d and %" PRId64, rank,
                               tensor_count(call->in[i + 1]));
        for (int k = 0; k < rank; k++) {
            if (k != axis && dims[k] != first[k])
                return kernel_fail(call, "shapes 0 and %d differ in dimension %d: %d and %d", i, k,
                                   first[k], dims[k]);
            ((int32_t *)call->out[i]->data)[k] = k == axis ? offset : 0;
        }
        if (__builtin_add_overflow(offset, dims[axis], &offset))
            return kernel_fail(call, "the sum of dimension %d does not fit int32", axis);
    }
    return KERNEL_DONE;
}

const struct kernel_code kernel_concat_offset = {.run = offset_run};
