/* SPDX-License-Identifier: Apache-2.0
 *
 * Fill, ZerosLike, OnesLike.
 */
#include "ops/array/reshape.h"
#include "ops/array/strided.h"
#include "ops/array/strided_kernels.h"

int run_fill(struct kernel_call *call)
{
    struct shape shape;
    if (reshape_read(call->in[0], &shape, call->err))
        return call->err->code;
    if (shape_count(&shape) < 0)
        return kernel_fail(call, "a tensor of shape %s is impossible", shape_text(&shape));
    if (tensor_count(call->in[1]) != 1)
        return kernel_fail(call, "value must be a scalar, not %s", shape_text(&call->in[1]->shape));
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    return strided_fill(call, out, call->in[1]->data);
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
