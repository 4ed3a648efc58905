/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/top_k_shapes.h"

#include "base/memory.h"
#include "ops/array/args.h"

int top_k_check(struct kernel_call *call, int64_t *n, int64_t *k)
{
    const struct shape *shape = &call->in[0]->shape;
    if (!shape->rank)
        return kernel_fail(call, "input must have at least rank 1");
    *n = shape->dims[shape->rank - 1];
    if (*n > INT32_MAX)
        return kernel_fail(call, "rows of %lld elements are too long", (long long)*n);
    if (args_scalar(call, 1, "k", k))
        return call->err->code;
    if (*k < 0 || *k > *n)
        return kernel_fail(call, "k is %lld, but rows have %lld elements", (long long)*k,
                           (long long)*n);
    return 0;
}

int top_k_outputs(struct kernel_call *call, int64_t k, struct tensor **values,
                  struct tensor **indices)
{
    struct shape shape = call->in[0]->shape;
    shape.dims[shape.rank - 1] = k;
    *values = kernel_alloc_output(call, 0, &shape);
    *indices = *values ? kernel_alloc_output(call, 1, &shape) : NULL;
    return *indices ? 0 : call->err->code;
}

int in_top_k_prepare(struct kernel_setup *setup)
{
    int64_t *k = setup->state = mem_alloc(sizeof *k);
    *k = node_int(setup->node, "k");
    return 0;
}

int in_top_k_check(struct kernel_call *call)
{
    const struct shape *predictions = &call->in[0]->shape, *targets = &call->in[1]->shape;
    if (predictions->rank == 2 && targets->rank == 1 && predictions->dims[0] == targets->dims[0])
        return 0;
    return kernel_fail(call,
                       "predictions must be a matrix and targets a vector of its rows, "
                       "not %s and %s",
                       shape_text(predictions), shape_text(targets));
}
