/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/array/args.h"
#include "ops/array/strided.h"
#include "ops/array/strided_kernels.h"

int run_tile(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    int64_t m[SHAPE_RANK_MAX], from[SHAPE_RANK_MAX], to[SHAPE_RANK_MAX];
    struct shape shape = {.rank = in->shape.rank};
    if (args_vector(call, 1, "multiples", shape.rank, m))
        return call->err->code;
    for (int i = 0; i < shape.rank; i++) {
        if (m[i] < 0)
            return kernel_fail(call, "multiple %d is negative: %" PRId64, i, m[i]);
        if (__builtin_mul_overflow(in->shape.dims[i], m[i], &shape.dims[i]))
            return kernel_fail(call, "the result is too large");
    }
    struct tensor *out = kernel_alloc_nonempty(call, 0, &shape);
    if (!out)
        return call->err->code;
    int64_t item = (int64_t)dtype_bytes(in->type);
    struct strided s = {.item_bytes = (size_t)item};
    shape_strides(&in->shape, from);
    shape_strides(&shape, to);
    for (int i = 0; i < shape.rank; i++) {
        strided_add(&s, m[i], to[i] * in->shape.dims[i] * item, 0);
        strided_add(&s, in->shape.dims[i], to[i] * item, from[i] * item);
    }
    return strided_move(call, &s, out->data, in->data);
}
