/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/array/args.h"

static int offset_run(struct kernel_call *call)
{
    int axis, rank = (int)tensor_count(call->in[1]);
    int32_t offset = 0;
    if (args_axis(call, 0, "concat_dim", rank, &axis))
        return call->err->code;
    const int32_t *first = call->in[1]->data;
    for (int i = 0; i < call->n_out; i++) {
        const int32_t *dims = call->in[i + 1]->data;
        if (tensor_count(call->in[i + 1]) != rank)
            return kernel_fail(call, "shapes must have the same rank, not %d and %" PRId64, rank,
                               tensor_count(call->in[i + 1]));
        struct shape shape = shape_vector(rank);
        struct tensor *out = kernel_alloc_output(call, i, &shape);
        if (!out)
            return call->err->code;
        for (int k = 0; k < rank; k++) {
            if (k != axis && dims[k] != first[k])
                return kernel_fail(call, "shapes 0 and %d differ in dimension %d: %d and %d", i, k,
                                   first[k], dims[k]);
            ((int32_t *)out->data)[k] = k == axis ? offset : 0;
        }
        if (__builtin_add_overflow(offset, dims[axis], &offset))
            return kernel_fail(call, "the sum of dimension %d does not fit int32", axis);
    }
    return KERNEL_DONE;
}

const struct kernel_code kernel_concat_offset = {.run = offset_run};
