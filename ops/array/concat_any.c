/* SPDX-License-Identifier: Apache-2.0
 *
 * Concat, Split, Pack and Unpack: a whole, seen as [outer, parts, inner], and parts that follow one
 * another in its middle dimension.
 */
#include "base/memory.h"
#include "ops/array/args.h"
#include "ops/array/strided.h"
#include "ops/array/strided_kernels.h"
#include "ops/math/outputs.h"

/* One part of the whole: `offset` and `length` count rows of `inner` bytes. */
struct concat_part {
    int64_t outer, whole, inner; /* dimensions of the whole; inner in bytes */
    int64_t offset, length;
};

static int copy_part(struct kernel_call *call, const struct concat_part *p, char *whole, char *part,
                     bool join)
{
    int64_t row = p->length * p->inner, stride = p->whole * p->inner;
    whole += p->offset * p->inner;
    /* Bytes are copied in the largest unit that fits, so that short rows do not become calls of
     * memcpy. */
    uint64_t all = (uint64_t)(row | stride) | (uintptr_t)whole | (uintptr_t)part;
    size_t item = all % 8 == 0 ? 8 : all % 4 == 0 ? 4 : all % 2 == 0 ? 2 : 1;
    struct strided s = {.item_bytes = item};
    strided_add(&s, p->outer, join ? stride : row, join ? row : stride);
    strided_add(&s, row / (int64_t)item, (int64_t)item, (int64_t)item);
    return join ? strided_move(call, &s, whole, part) : strided_move(call, &s, part, whole);
}

/* Joins the inputs from `first` on. axis < 0: each has one row. */
static int join_parts(struct kernel_call *call, struct concat_part p, struct tensor *whole,
                      int first, int axis)
{
    int result = KERNEL_DONE;
    for (int i = first; i < call->n_in; i++) {
        p.length = axis < 0 ? 1 : call->in[i]->shape.dims[axis];
        int code = copy_part(call, &p, whole->data, call->in[i]->data, true);
        if (code > 0)
            return code;
        result = code ? code : result;
        p.offset += p.length;
    }
    return result;
}

/* Splits into all outputs. */
static int split_parts(struct kernel_call *call, struct concat_part p, const struct tensor *whole)
{
    int result = KERNEL_DONE;
    for (int i = 0; i < call->n_out; i++) {
        int code = copy_part(call, &p, whole->data, call->out[i]->data, false);
        if (code > 0)
            return code;
        result = code ? code : result;
        p.offset += p.length;
    }
    return result;
}

static struct concat_part part_at(const struct shape *whole, int axis, enum dtype type)
{
    int64_t inner = shape_count_of(whole, axis + 1, whole->rank);
    return (struct concat_part){.outer = shape_count_of(whole, 0, axis),
                                .whole = whole->dims[axis],
                                .inner = inner * (int64_t)dtype_bytes(type)};
}

/* ---- Concat, Split ---- */

int run_concat(struct kernel_call *call)
{
    struct tensor *out = result_outputs(call, 0, 1);
    if (!out)
        return call->err->code;
    int axis = args_axis(call, 0, out->shape.rank);
    return join_parts(call, part_at(&out->shape, axis, out->type), out, 1, axis);
}

int run_split(struct kernel_call *call)
{
    const struct tensor *in = call->in[1], *out = result_outputs(call, 0, 1);
    if (!out)
        return call->err->code;
    int axis = args_axis(call, 0, in->shape.rank);
    struct concat_part p = part_at(&in->shape, axis, in->type);
    p.length = out->shape.dims[axis];
    return split_parts(call, p, in);
}

/* ---- Pack, Unpack ---- */

int prepare_axis(struct kernel_setup *setup)
{
    int64_t *axis = setup->state = mem_alloc(sizeof *axis);
    *axis = node_int(setup->node, "axis");
    return 0;
}

int run_pack(struct kernel_call *call)
{
    struct tensor *out = result_outputs(call, 0, 0);
    int axis;
    if (!out)
        return call->err->code;
    shape_axis(*(const int64_t *)call->state, out->shape.rank, &axis);
    return join_parts(call, part_at(&out->shape, axis, out->type), out, 0, -1);
}

int run_unpack(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    int axis;
    if (!result_outputs(call, 0, 0))
        return call->err->code;
    shape_axis(*(const int64_t *)call->state, in->shape.rank, &axis);
    struct concat_part p = part_at(&in->shape, axis, in->type);
    p.length = 1;
    return split_parts(call, p, in);
}
