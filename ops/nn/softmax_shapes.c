/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/softmax.h"

int softmax_rows_of(struct kernel_call *call, int64_t *rows, int64_t *n)
{
    const struct shape *shape = &call->in[0]->shape;
    if (!shape->rank)
        return kernel_fail(call, "logits must have at least rank 1, not %s", shape_text(shape));
    *n = shape->dims[shape->rank - 1];
    *rows = *n ? shape_count(shape) / *n : 0;
    return 0;
}

int cross_entropy_shape_of(struct kernel_call *call, struct shape *shape)
{
    const struct shape *features = &call->in[0]->shape, *labels = &call->in[1]->shape;
    if (!shape_broadcast(features, labels, shape) || shape->rank != 2)
        return kernel_fail(call, "features and labels must broadcast to a matrix, not %s and %s",
                           shape_text(features), shape_text(labels));
    return 0;
}

int sparse_cross_entropy_check(struct kernel_call *call)
{
    const struct shape *shape = &call->in[0]->shape, *labels = &call->in[1]->shape;
    if (shape->rank != 2 || labels->rank != 1 || labels->dims[0] != shape->dims[0])
        return kernel_fail(call,
                           "features must be a matrix and labels a vector of its rows, not %s "
                           "and %s",
                           shape_text(shape), shape_text(labels));
    return 0;
}

int cross_entropy_outputs(struct kernel_call *call, const struct shape *shape, struct tensor **loss,
                          struct tensor **backprop)
{
    struct shape losses = shape_vector(shape->dims[0]);
    *loss = kernel_alloc_output(call, 0, &losses);
    *backprop = *loss ? kernel_alloc_output(call, 1, shape) : NULL;
    return *backprop ? 0 : call->err->code;
}
