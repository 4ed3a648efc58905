/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/array/results.h"

#include "exec/device/step_block.h"
#include "ops/array/args.h"
#include "ops/array/reshape.h"

int result_of_gather(struct kernel_call *call, struct shape *shape)
{
    const struct shape *params = &call->in[0]->shape, *indices = &call->in[1]->shape;
    if (params->rank < 1 || indices->rank + params->rank - 1 > SHAPE_RANK_MAX)
        return kernel_fail(call, "params %s and indices %s do not go together", shape_text(params),
                           shape_text(indices));
    *shape = *indices;
    for (int i = 1; i < params->rank; i++)
        shape->dims[shape->rank++] = params->dims[i];
    return 0;
}

int result_of_segments(struct kernel_call *call, struct shape *shape)
{
    const struct shape *data = &call->in[0]->shape, *ids = &call->in[1]->shape;
    int64_t n = 0;
    if (args_scalar(call, 2, "num_segments", &n))
        return call->err->code;
    if (n < 0)
        return kernel_fail(call, "num_segments is negative: %" PRId64, n);
    struct shape head = *data;
    head.rank = ids->rank <= head.rank ? ids->rank : 0;
    if (!shape_equal(&head, ids))
        return kernel_fail(call, "the shape of segment_ids, %s, does not begin that of data, %s",
                           shape_text(ids), shape_text(data));
    if (data->rank - head.rank + 1 > SHAPE_RANK_MAX)
        return kernel_fail(call, "the result would have more than %d dimensions", SHAPE_RANK_MAX);
    *shape = shape_vector(n);
    for (int i = head.rank; i < data->rank; i++)
        shape->dims[shape->rank++] = data->dims[i];
    return 0;
}

int result_of_one_hot(struct kernel_call *call, int64_t axis, struct shape *shape, int *at)
{
    const struct shape *in = &call->in[0]->shape;
    int64_t depth = 0;
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

bool tile_grad_fits(const struct shape *in, const struct shape *shape, const int64_t *multiples)
{
    bool fits = shape->rank == in->rank && shape_count(shape) >= 0;
    for (int i = 0; fits && i < shape->rank; i++) {
        int64_t dim;
        fits = multiples[i] >= 0 && !__builtin_mul_overflow(shape->dims[i], multiples[i], &dim) &&
               dim == in->dims[i];
    }
    return fits;
}

int result_of_tile_grad(struct kernel_call *call, struct shape *shape, int64_t *multiples)
{
    const struct tensor *in = call->in[0];
    if (reshape_read(call->in[2], shape, call->err) ||
        args_vector(call, 1, "multiples", in->shape.rank, multiples))
        return call->err->code;
    if (!tile_grad_fits(&in->shape, shape, multiples))
        return kernel_fail(call, "%s is not made of repetitions of %s", shape_text(&in->shape),
                           shape_text(shape));
    return 0;
}

int result_of_range(struct kernel_call *call, int64_t *n)
{
    for (int i = 0; i < 3; i++)
        if (tensor_count(call->in[i]) != 1)
            return kernel_fail(call, "start, limit and delta must be scalars, not %s",
                               shape_text(&call->in[i]->shape));
    return range_count(call->in[0], call->in[1], call->in[2], n, call->err);
}

int rows_check(struct kernel_call *call, int input, int64_t n)
{
    const struct tensor *indices = call->in[input];
    int64_t count = tensor_count(indices);
    const int32_t *i32 = indices->data;
    const int64_t *i64 = indices->data;
    for (int64_t i = 0; i < count; i++) {
        int64_t index = indices->type == INT64 ? i64[i] : i32[i];
        if (index < 0 || index >= n)
            return kernel_fault(call, &(struct fault){.code = FAULT_INDEX,
                                                      .input = (uint16_t)input,
                                                      .at = i,
                                                      .value = index,
                                                      .limit = n});
    }
    return 0;
}
