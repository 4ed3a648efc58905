/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/array/strided.h"
#include "ops/array/strided_kernels.h"
#include "ops/math/outputs.h"

int run_tile(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    int64_t from[SHAPE_RANK_MAX], to[SHAPE_RANK_MAX];
    struct tensor *out = result_outputs(call, 1, 2);
    if (!out || !tensor_count(out))
        return call->err->code;
    int64_t item = (int64_t)dtype_bytes(in->type);
    struct strided s = {.item_bytes = (size_t)item};
    shape_strides(&in->shape, from);
    shape_strides(&out->shape, to);
    for (int i = 0; i < in->shape.rank; i++) {
        strided_add(&s, tensor_get_int64(call->in[1], i), to[i] * in->shape.dims[i] * item, 0);
        strided_add(&s, in->shape.dims[i], to[i] * item, from[i] * item);
    }
    return strided_move(call, &s, out->data, in->data);
}
