/* SPDX-License-Identifier: Apache-2.0
 *
 * Concat, Split, Pack and Unpack: a whole, seen as [outer, parts, inner], and parts that follow one
 * another in its middle dimension.
 */
#include "base/memory.h"
#include "ops/array/args.h"
#include "ops/array/strided.h"
#include "ops/array/strided_kernels.h"

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

/* Splits into all outputs, which have one shape. */
static int split_parts(struct kernel_call *call, struct concat_part p, const struct tensor *whole,
                       const struct shape *shape)
{
    int result = KERNEL_DONE;
    for (int i = 0; i < call->n_out; i++) {
        struct tensor *out = kernel_alloc_output(call, i, shape);
        int code = out ? copy_part(call, &p, whole->data, out->data, false) : call->err->code;
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
    struct shape shape = call->in[1]->shape;
    int axis;
    if (shape.rank == 0)
        return kernel_fail(call, "scalars cannot be joined: use Pack");
    if (args_axis(call, 0, "concat_dim", shape.rank, &axis))
        return call->err->code;
    for (int i = 2; i < call->n_in; i++) {
        const struct shape *s = &call->in[i]->shape;
        bool same = s->rank == shape.rank;
        for (int k = 0; same && k < s->rank; k++)
            same = k == axis || s->dims[k] == shape.dims[k];
        if (!same)
            return kernel_fail(call, "values %s and %s cannot be joined along dimension %d",
                               shape_text(&call->in[1]->shape), shape_text(s), axis);
        if (__builtin_add_overflow(shape.dims[axis], s->dims[axis], &shape.dims[axis]))
            return kernel_fail(call, "the result is too large");
    }
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    return join_parts(call, part_at(&shape, axis, out->type), out, 1, axis);
}

int run_split(struct kernel_call *call)
{
    const struct tensor *in = call->in[1];
    struct shape shape = in->shape;
    int axis;
    if (args_axis(call, 0, "split_dim", shape.rank, &axis))
        return call->err->code;
    if (shape.dims[axis] % call->n_out)
        return kernel_fail(call, "dimension %d of %s cannot be split into %d equal parts", axis,
                           shape_text(&in->shape), call->n_out);
    struct concat_part p = part_at(&in->shape, axis, in->type);
    p.length = shape.dims[axis] /= call->n_out;
    return split_parts(call, p, in, &shape);
}

/* ---- Pack, Unpack ---- */

int prepare_axis(struct kernel_setup *setup)
{
    int64_t *axis = setup->state = mem_alloc(sizeof *axis);
    *axis = node_int(setup->node, "axis");
    return 0;
}

static int axis_of(struct kernel_call *call, int rank, int *axis)
{
    int64_t value = *(const int64_t *)call->state;
    if (rank > SHAPE_RANK_MAX)
        return kernel_fail(call, "the result would have more than %d dimensions", SHAPE_RANK_MAX);
    if (!shape_axis(value, rank, axis))
        return kernel_fail(call, "axis %" PRId64 " is outside [%d, %d)", value, -rank, rank);
    return 0;
}

int run_pack(struct kernel_call *call)
{
    const struct shape *part = &call->in[0]->shape;
    struct shape shape = {.rank = part->rank + 1};
    int axis;
    if (axis_of(call, shape.rank, &axis))
        return call->err->code;
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = i < axis ? part->dims[i] : i == axis ? call->n_in : part->dims[i - 1];
    for (int i = 1; i < call->n_in; i++)
        if (!shape_equal(&call->in[i]->shape, part))
            return kernel_fail(call, "values must have the same shape, not %s and %s",
                               shape_text(part), shape_text(&call->in[i]->shape));
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    return join_parts(call, part_at(&shape, axis, out->type), out, 0, -1);
}

int run_unpack(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    struct shape shape = {.rank = in->shape.rank - 1};
    int axis;
    if (axis_of(call, in->shape.rank, &axis))
        return call->err->code;
    if (in->shape.dims[axis] != call->n_out)
        return kernel_fail(call, "dimension %d of %s is not num, which is %d", axis,
                           shape_text(&in->shape), call->n_out);
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = in->shape.dims[i < axis ? i : i + 1];
    struct concat_part p = part_at(&in->shape, axis, in->type);
    p.length = 1;
    return split_parts(call, p, in, &shape);
}
