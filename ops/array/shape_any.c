/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that look only at the shape of their input.
 */
#include <inttypes.h>

#include "exec/device/kernel.h"

static int put(struct kernel_call *call, struct tensor *out, int64_t index, int64_t value)
{
    if (out->type == INT32 && value > INT32_MAX)
        return kernel_fail(call, "%" PRId64 " does not fit int32: ask for out_type int64", value);
    tensor_set_int64(out, index, value);
    return KERNEL_DONE;
}

static int put_scalar(struct kernel_call *call, int64_t value)
{
    struct tensor *out = kernel_alloc_output(call, 0, &SHAPE_SCALAR);
    return out ? put(call, out, 0, value) : call->err->code;
}

static int shape_run(struct kernel_call *call)
{
    const struct shape *in = &call->in[0]->shape;
    struct shape vector = shape_vector(in->rank);
    struct tensor *out = kernel_alloc_output(call, 0, &vector);
    int code = out ? KERNEL_DONE : call->err->code;
    for (int i = 0; code == KERNEL_DONE && i < in->rank; i++)
        code = put(call, out, i, in->dims[i]);
    return code;
}

static int size_run(struct kernel_call *call)
{
    return put_scalar(call, tensor_count(call->in[0]));
}

static int rank_run(struct kernel_call *call)
{
    return put_scalar(call, call->in[0]->shape.rank);
}

const struct kernel_code kernel_shape = {.run = shape_run};
const struct kernel_code kernel_size = {.run = size_run};
const struct kernel_code kernel_rank = {.run = rank_run};
