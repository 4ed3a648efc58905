/* SPDX-License-Identifier: Apache-2.0
 *
 * Fill, ZerosLike, OnesLike.
 */
#include "ops/array/strided.h"
#include "ops/array/strided_kernels.h"
#include "ops/math/outputs.h"

int run_fill(struct kernel_call *call)
{
    struct tensor *out = result_outputs(call, 0, 1);
    return out ? strided_fill(call, out, call->in[1]->data) : call->err->code;
}

int run_zeros_like(struct kernel_call *call)
{
    struct tensor *out = kernel_alloc_output(call, 0, &call->in[0]->shape);
    return out ? strided_fill_bits(call, out, 0) : call->err->code;
}

int run_ones_like(struct kernel_call *call)
{
    struct tensor *out = kernel_alloc_output(call, 0, &call->in[0]->shape);
    if (!out)
        return call->err->code;
    uint64_t element = 0;
    struct tensor one = tensor_borrow(out->type, &SHAPE_SCALAR, &element);
    tensor_set_float64(&one, 0, 1);
    return strided_fill_bits(call, out, element);
}
