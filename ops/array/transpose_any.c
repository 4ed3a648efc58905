/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/array/args.h"
#include "ops/array/strided.h"
#include "ops/array/strided_kernels.h"

/* ---- Transpose ---- */

int run_transpose(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    int64_t perm[SHAPE_RANK_MAX], from[SHAPE_RANK_MAX], to[SHAPE_RANK_MAX];
    struct shape shape = {.rank = in->shape.rank};
    bool used[SHAPE_RANK_MAX] = {false};
    if (args_vector(call, 1, "perm", shape.rank, perm))
        return call->err->code;
    for (int i = 0; i < shape.rank; i++) {
        if (perm[i] < 0 || perm[i] >= shape.rank || used[perm[i]])
            return kernel_fail(call, "perm is not a permutation of 0 to %d: element %d is %" PRId64,
                               shape.rank - 1, i, perm[i]);
        used[perm[i]] = true;
        shape.dims[i] = in->shape.dims[perm[i]];
    }
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    int64_t item = (int64_t)dtype_bytes(in->type);
    struct strided s = {.item_bytes = (size_t)item};
    shape_strides(&in->shape, from);
    shape_strides(&shape, to);
    for (int i = 0; i < shape.rank; i++)
        strided_add(&s, shape.dims[i], to[i] * item, from[perm[i]] * item);
    return strided_move(call, &s, out->data, in->data);
}

/* ---- Reverse ---- */

int run_reverse(struct kernel_call *call)
{
    const struct tensor *in = call->in[0], *dims = call->in[1];
    int64_t strides[SHAPE_RANK_MAX], offset = 0;
    if (dims->shape.rank != 1 || dims->shape.dims[0] != in->shape.rank)
        return kernel_fail(call, "dims must be a vector of %d elements, not %s", in->shape.rank,
                           shape_text(&dims->shape));
    struct tensor *out = kernel_alloc_nonempty(call, 0, &in->shape);
    if (!out)
        return call->err->code;
    int64_t item = (int64_t)dtype_bytes(in->type);
    struct strided s = {.item_bytes = (size_t)item};
    shape_strides(&in->shape, strides);
    for (int i = 0; i < in->shape.rank; i++) {
        bool back = ((const bool *)dims->data)[i];
        int64_t step = strides[i] * item;
        offset += back ? (in->shape.dims[i] - 1) * step : 0;
        strided_add(&s, in->shape.dims[i], step, back ? -step : step);
    }
    return strided_move(call, &s, out->data, (const char *)in->data + offset);
}
