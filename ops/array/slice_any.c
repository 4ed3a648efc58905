/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/array/slice.h"

#include "base/memory.h"
#include "ops/array/strided.h"
#include "ops/array/strided_kernels.h"
#include "ops/math/outputs.h"

/* Describes a block of `shape` that is a part of two row-major tensors. */
static struct strided block_of(const struct shape *shape, const struct shape *to,
                               const struct shape *from, int64_t item)
{
    struct strided s = {.item_bytes = (size_t)item};
    int64_t to_strides[SHAPE_RANK_MAX], from_strides[SHAPE_RANK_MAX];
    shape_strides(to, to_strides);
    shape_strides(from, from_strides);
    for (int i = 0; i < shape->rank; i++)
        strided_add(&s, shape->dims[i], to_strides[i] * item, from_strides[i] * item);
    return s;
}

/* ---- Slice ---- */

int run_slice(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    int64_t strides[SHAPE_RANK_MAX], offset = 0;
    struct tensor *out = result_outputs(call, 1, 3);
    if (!out || !tensor_count(out))
        return call->err->code;
    shape_strides(&in->shape, strides);
    for (int i = 0; i < in->shape.rank; i++)
        offset += tensor_get_int64(call->in[1], i) * strides[i];
    int64_t item = (int64_t)dtype_bytes(in->type);
    struct strided block = block_of(&out->shape, &out->shape, &in->shape, item);
    return strided_move(call, &block, out->data, (const char *)in->data + offset * item);
}

/* ---- Pad ---- */

int run_pad(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    int64_t strides[SHAPE_RANK_MAX], offset = 0;
    struct tensor *out = result_outputs(call, 1, 2);
    if (!out)
        return call->err->code;
    int result = strided_fill_bits(call, out, 0);
    if (result > 0 || !tensor_count(in))
        return result;
    shape_strides(&out->shape, strides);
    for (int i = 0; i < in->shape.rank; i++)
        offset += tensor_get_int64(call->in[1], 2 * i) * strides[i];
    int64_t item = (int64_t)dtype_bytes(in->type);
    struct strided block = block_of(&in->shape, &out->shape, &in->shape, item);
    return strided_move(call, &block, (char *)out->data + offset * item, in->data);
}

/* ---- StridedSlice and its gradient ---- */

int prepare_slice_masks(struct kernel_setup *setup)
{
    struct slice_masks *masks = setup->state = mem_alloc(sizeof *masks);
    *masks = slice_masks_of(setup->node);
    return 0;
}

/* Reads begin, end and strides (inputs 1 to 3), whose length was checked, for a tensor of shape
 * `in`. */
static int find_range(struct kernel_call *call, const struct shape *in, struct strided_range *range)
{
    int64_t values[3][SLICE_SPEC_MAX];
    int n = (int)tensor_count(call->in[1]);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < n; k++)
            values[i][k] = tensor_get_int64(call->in[1 + i], k);
    struct slice_spec spec = {*(const struct slice_masks *)call->state, n, values[0], values[1],
                              values[2]};
    return slice_resolve_strided(in, &spec, range, call->err);
}

/* Returns the part's first element within the whole, in bytes, and the stride of each dimension. */
static int64_t part_of(const struct strided_range *range, const struct shape *whole, int64_t item,
                       int64_t *steps)
{
    int64_t offset = 0;
    shape_strides(whole, steps);
    for (int i = 0; i < range->rank; i++) {
        offset += range->start[i] * steps[i] * item;
        steps[i] *= range->step[i] * item;
    }
    return offset;
}

int run_strided_slice(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    struct strided_range range;
    int64_t steps[SHAPE_RANK_MAX], dense[SHAPE_RANK_MAX];
    struct tensor *out = result_outputs_sized(call, 1, 4);
    if (!out || find_range(call, &in->shape, &range))
        return call->err->code;
    if (!shape_equal(&range.out, &out->shape)) /* bounds may be those of a variable's value */
        return kernel_fail(call, "the slice is %s, but was planned as %s", shape_text(&range.out),
                           shape_text(&out->shape));
    if (!tensor_count(out))
        return KERNEL_DONE;
    int64_t item = (int64_t)dtype_bytes(in->type);
    struct strided block = {.item_bytes = (size_t)item};
    int64_t offset = part_of(&range, &in->shape, item, steps);
    shape_strides(&range.count, dense);
    for (int i = 0; i < range.rank; i++)
        strided_add(&block, range.count.dims[i], dense[i] * item, steps[i]);
    return strided_move(call, &block, out->data, (const char *)in->data + offset);
}

int run_strided_slice_grad(struct kernel_call *call)
{
    const struct tensor *dy = call->in[4];
    struct strided_range range;
    int64_t steps[SHAPE_RANK_MAX], dense[SHAPE_RANK_MAX];
    struct tensor *out = result_outputs_sized(call, 0, 1);
    if (!out || find_range(call, &out->shape, &range))
        return call->err->code;
    if (!shape_equal(&range.out, &dy->shape))
        return kernel_fail(call, "dy is %s, but the slice is %s", shape_text(&dy->shape),
                           shape_text(&range.out));
    int result = strided_fill_bits(call, out, 0);
    if (result > 0 || !tensor_count(dy))
        return result;
    int64_t item = (int64_t)dtype_bytes(dy->type);
    struct strided block = {.item_bytes = (size_t)item};
    int64_t offset = part_of(&range, &out->shape, item, steps);
    shape_strides(&range.count, dense);
    for (int i = 0; i < range.rank; i++)
        strided_add(&block, range.count.dims[i], steps[i], dense[i] * item);
    return strided_move(call, &block, (char *)out->data + offset, dy->data);
}
