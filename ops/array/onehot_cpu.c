/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/memory.h"
#include "ops/array/args.h"
#include "ops/array/strided.h"

static int onehot_prepare(struct kernel_setup *setup)
{
    int64_t *axis = mem_alloc(sizeof *axis);
    *axis = node_int(setup->node, "axis");
    setup->state = axis;
    return 0;
}

static int result_shape(struct kernel_call *call, struct shape *shape, int *at)
{
    const struct shape *in = &call->in[0]->shape;
    int64_t depth = 0, axis = *(const int64_t *)call->state;
    if (args_scalar(call, 1, "depth", &depth))
        return call->err->code;
    if (depth < 0)
        return kernel_fail(call, "depth is negative: %" PRId64, depth);
    if (tensor_count(call->in[2]) != 1 || tensor_count(call->in[3]) != 1)
        return kernel_fail(call, "on_value and off_value must be scalars");
    if (in->rank == SHAPE_RANK_MAX || !shape_axis(axis, in->rank + 1, at))
        return kernel_fail(call, "axis %" PRId64 " of indices %s is impossible", axis,
                           shape_text(in));
    shape->rank = in->rank + 1;
    for (int i = 0; i < shape->rank; i++)
        shape->dims[i] = i < *at ? in->dims[i] : i == *at ? depth : in->dims[i - 1];
    return 0;
}

static int onehot_run(struct kernel_call *call)
{
    const struct tensor *indices = call->in[0];
    struct shape shape;
    int at;
    if (result_shape(call, &shape, &at))
        return call->err->code;
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    int64_t depth = shape.dims[at], inner = 1, n = tensor_count(indices);
    size_t item = dtype_bytes(out->type);
    struct strided s = {.item_bytes = item};
    strided_add(&s, tensor_count(out), (int64_t)item, 0);
    strided_copy(&s, out->data, call->in[3]->data, call->threads);
    for (int i = at + 1; i < shape.rank; i++)
        inner *= shape.dims[i];
    for (int64_t i = 0; i < n; i++) {
        int64_t index = tensor_get_int64(indices, i);
        if (index >= 0 && index < depth)
            memcpy((char *)out->data +
                       (size_t)((i / inner * depth + index) * inner + i % inner) * item,
                   call->in[2]->data, item);
    }
    return KERNEL_DONE;
}

const struct kernel_code kernel_one_hot = {.prepare = onehot_prepare, .run = onehot_run};
