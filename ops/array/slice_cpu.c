/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/array/slice.h"

#include <string.h>

#include "base/memory.h"
#include "ops/array/args.h"
#include "ops/array/strided.h"

/* ---- Slice ---- */

static int slice_run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    int64_t begin[SHAPE_RANK_MAX], size[SHAPE_RANK_MAX], strides[SHAPE_RANK_MAX], offset = 0;
    struct shape shape;
    if (args_vector(call, 1, "begin", in->shape.rank, begin) ||
        args_vector(call, 2, "size", in->shape.rank, size) ||
        slice_resolve(&in->shape, begin, size, &shape, call->err))
        return call->err->code;
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    if (!tensor_count(out))
        return KERNEL_DONE;
    shape_strides(&in->shape, strides);
    for (int i = 0; i < shape.rank; i++)
        offset += begin[i] * strides[i];
    size_t item = dtype_bytes(in->type);
    struct strided block = strided_block(&shape, &shape, &in->shape, item);
    strided_copy(&block, out->data, (const char *)in->data + offset * (int64_t)item, call->threads);
    return KERNEL_DONE;
}

const struct kernel_code kernel_slice = {.run = slice_run};

/* ---- Pad ---- */

static int padded_shape(struct kernel_call *call, struct shape *shape, int64_t *before)
{
    const struct shape *in = &call->in[0]->shape, *p = &call->in[1]->shape;
    if (p->rank != 2 || p->dims[0] != in->rank || p->dims[1] != 2)
        return kernel_fail(call, "paddings must be [%d,2], not %s", in->rank, shape_text(p));
    shape->rank = in->rank;
    for (int i = 0; i < in->rank; i++) {
        int64_t after = tensor_get_int64(call->in[1], 2 * i + 1);
        before[i] = tensor_get_int64(call->in[1], 2 * i);
        if (before[i] < 0 || after < 0)
            return kernel_fail(call, "paddings of dimension %d are negative: %" PRId64 ", %" PRId64,
                               i, before[i], after);
        if (__builtin_add_overflow(before[i], after, &shape->dims[i]) ||
            __builtin_add_overflow(shape->dims[i], in->dims[i], &shape->dims[i]))
            return kernel_fail(call, "paddings of dimension %d are too large", i);
    }
    return 0;
}

static int pad_run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    int64_t before[SHAPE_RANK_MAX], strides[SHAPE_RANK_MAX], offset = 0;
    struct shape shape;
    if (padded_shape(call, &shape, before))
        return call->err->code;
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    size_t item = dtype_bytes(in->type);
    memset(out->data, 0, tensor_bytes(out));
    if (!tensor_count(in))
        return KERNEL_DONE;
    shape_strides(&shape, strides);
    for (int i = 0; i < shape.rank; i++)
        offset += before[i] * strides[i];
    struct strided block = strided_block(&in->shape, &shape, &in->shape, item);
    strided_copy(&block, (char *)out->data + offset * (int64_t)item, in->data, call->threads);
    return KERNEL_DONE;
}

const struct kernel_code kernel_pad = {.run = pad_run};

/* ---- StridedSlice and its gradient ---- */

#define SPEC_MAX (2 * SHAPE_RANK_MAX)

static int masks_prepare(struct kernel_setup *setup)
{
    struct slice_masks *masks = mem_alloc(sizeof *masks);
    *masks = slice_masks_of(setup->node);
    setup->state = masks;
    return 0;
}

/* Reads begin, end and strides (inputs 1 to 3) for a tensor of shape `in`. */
static int find_range(struct kernel_call *call, const struct shape *in, struct strided_range *range)
{
    int64_t begin[SPEC_MAX], end[SPEC_MAX], strides[SPEC_MAX];
    int64_t n = tensor_count(call->in[1]);
    if (n > SPEC_MAX)
        return kernel_fail(call, "%" PRId64 " indices: at most %d are possible", n, SPEC_MAX);
    if (args_vector(call, 1, "begin", (int)n, begin) || args_vector(call, 2, "end", (int)n, end) ||
        args_vector(call, 3, "strides", (int)n, strides))
        return call->err->code;
    struct slice_spec spec = {*(const struct slice_masks *)call->state, (int)n, begin, end,
                              strides};
    return slice_resolve_strided(in, &spec, range, call->err);
}

/* The part as seen in the whole: first element, in bytes, and stride of each dimension. */
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

static int strided_slice_run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    struct strided_range range;
    int64_t steps[SHAPE_RANK_MAX], dense[SHAPE_RANK_MAX];
    if (find_range(call, &in->shape, &range))
        return call->err->code;
    struct tensor *out = kernel_alloc_output(call, 0, &range.out);
    if (!out)
        return call->err->code;
    size_t item = dtype_bytes(in->type);
    struct strided block = {.item_bytes = item};
    int64_t offset = part_of(&range, &in->shape, (int64_t)item, steps);
    shape_strides(&range.count, dense);
    for (int i = 0; i < range.rank; i++)
        strided_add(&block, range.count.dims[i], dense[i] * (int64_t)item, steps[i]);
    if (tensor_count(out))
        strided_copy(&block, out->data, (const char *)in->data + offset, call->threads);
    return KERNEL_DONE;
}

const struct kernel_code kernel_strided_slice = {.prepare = masks_prepare,
                                                 .run = strided_slice_run};

static int whole_shape(struct kernel_call *call, struct shape *shape)
{
    int64_t n = tensor_count(call->in[0]);
    if (n > SHAPE_RANK_MAX || args_vector(call, 0, "shape", (int)n, shape->dims))
        return kernel_fail(call, "shape must be a vector of at most %d elements", SHAPE_RANK_MAX);
    shape->rank = (int)n;
    if (shape_count(shape) < 0)
        return kernel_fail(call, "shape %s is impossible", shape_text(shape));
    return 0;
}

static int strided_grad_run(struct kernel_call *call)
{
    const struct tensor *dy = call->in[4];
    struct shape shape;
    struct strided_range range;
    int64_t steps[SHAPE_RANK_MAX], dense[SHAPE_RANK_MAX];
    if (whole_shape(call, &shape) || find_range(call, &shape, &range))
        return call->err->code;
    if (!shape_equal(&range.out, &dy->shape))
        return kernel_fail(call, "dy is %s, but the slice is %s", shape_text(&dy->shape),
                           shape_text(&range.out));
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    size_t item = dtype_bytes(dy->type);
    memset(out->data, 0, tensor_bytes(out));
    struct strided block = {.item_bytes = item};
    int64_t offset = part_of(&range, &shape, (int64_t)item, steps);
    shape_strides(&range.count, dense);
    for (int i = 0; i < range.rank; i++)
        strided_add(&block, range.count.dims[i], steps[i], dense[i] * (int64_t)item);
    if (tensor_count(dy))
        strided_copy(&block, (char *)out->data + offset, dy->data, call->threads);
    return KERNEL_DONE;
}

const struct kernel_code kernel_strided_slice_grad = {.prepare = masks_prepare,
                                                      .run = strided_grad_run};
