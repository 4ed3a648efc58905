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

/* The parts of a whole, one after the other. */
struct concat_parts {
    int64_t outer, whole, inner; /* dimensions of the whole; inner in bytes */
    int axis;                    /* along which parts may have several rows; -1: each has one */
    bool joins;                  /* else the whole is split */
};

static int copy_part(struct kernel_call *call, const struct concat_parts *p, int64_t length,
                     char *whole, char *part)
{
    int64_t row = length * p->inner, stride = p->whole * p->inner;
    /* Bytes are copied in the largest unit that fits, so that short rows do not become calls of
     * memcpy. */
    uint64_t all = (uint64_t)(row | stride) | (uintptr_t)whole | (uintptr_t)part;
    size_t item = all % 8 == 0 ? 8 : all % 4 == 0 ? 4 : all % 2 == 0 ? 2 : 1;
    struct strided s = {.item_bytes = item};
    strided_add(&s, p->outer, p->joins ? stride : row, p->joins ? row : stride);
    strided_add(&s, row / (int64_t)item, (int64_t)item, (int64_t)item);
    return p->joins ? strided_move(call, &s, whole, part) : strided_move(call, &s, part, whole);
}

static int copy_parts(struct kernel_call *call, const struct concat_parts *p, char *whole,
                      struct tensor *const *parts, int n)
{
    int result = KERNEL_DONE;
    for (int i = 0; i < n; i++) {
        int64_t length = p->axis < 0 ? 1 : parts[i]->shape.dims[p->axis];
        int code = copy_part(call, p, length, whole, parts[i]->data);
        if (code > 0)
            return code;
        result = code ? code : result;
        whole += length * p->inner;
    }
    return result;
}

static struct concat_parts parts_along(const struct tensor *whole, int axis)
{
    const struct shape *shape = &whole->shape;
    int64_t inner = shape_count_of(shape, axis + 1, shape->rank);
    return (struct concat_parts){.outer = shape_count_of(shape, 0, axis),
                                 .whole = shape->dims[axis],
                                 .inner = inner * (int64_t)dtype_bytes(whole->type),
                                 .axis = axis};
}

/* ---- Concat, Split ---- */

int run_concat(struct kernel_call *call)
{
    struct tensor *out = result_outputs(call, 0, 1);
    if (!out)
        return call->err->code;
    struct concat_parts p = parts_along(out, args_axis(call, 0, out->shape.rank));
    p.joins = true;
    return copy_parts(call, &p, out->data, call->in + 1, call->n_in - 1);
}

int run_split(struct kernel_call *call)
{
    const struct tensor *in = call->in[1];
    if (!result_outputs(call, 0, 1))
        return call->err->code;
    const struct concat_parts p = parts_along(in, args_axis(call, 0, in->shape.rank));
    return copy_parts(call, &p, in->data, call->out, call->n_out);
}

/* ---- Pack, Unpack ---- */

int prepare_axis(struct kernel_setup *setup)
{
    int64_t *axis = setup->state = mem_alloc(sizeof *axis);
    *axis = node_int(setup->node, "axis");
    return 0;
}

static struct concat_parts slices_along(const struct kernel_call *call, const struct tensor *whole)
{
    int axis;
    shape_axis(*(const int64_t *)call->state, whole->shape.rank, &axis);
    struct concat_parts p = parts_along(whole, axis);
    p.axis = -1;
    return p;
}

int run_pack(struct kernel_call *call)
{
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out)
        return call->err->code;
    struct concat_parts p = slices_along(call, out);
    p.joins = true;
    return copy_parts(call, &p, out->data, call->in, call->n_in);
}

int run_unpack(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    if (!result_outputs(call, 0, 0))
        return call->err->code;
    const struct concat_parts p = slices_along(call, in);
    return copy_parts(call, &p, in->data, call->out, call->n_out);
}
