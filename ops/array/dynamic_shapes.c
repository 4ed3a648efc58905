/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ops/array/results.h"

/* Finds the shape [n] and what follows the indices' shape in data's; returns 0, or an error. */
static int row_shape(struct kernel_call *call, const struct tensor *data,
                     const struct tensor *indices, struct shape *rows)
{
    struct shape head = data->shape;
    head.rank = indices->shape.rank <= head.rank ? indices->shape.rank : 0;
    if (!shape_equal(&head, &indices->shape))
        return kernel_fail(call, "the shape of the numbers, %s, does not begin that of data, %s",
                           shape_text(&indices->shape), shape_text(&data->shape));
    if (data->shape.rank - head.rank + 1 > SHAPE_RANK_MAX)
        return kernel_fail(call, "the result would have more than %d dimensions", SHAPE_RANK_MAX);
    *rows = shape_vector(0);
    for (int i = head.rank; i < data->shape.rank; i++)
        rows->dims[rows->rank++] = data->shape.dims[i];
    return 0;
}

int dynamic_partition_counts(struct kernel_call *call, struct shape *rows, int64_t *counts)
{
    const struct tensor *partitions = call->in[1];
    if (row_shape(call, call->in[0], partitions, rows) || rows_check(call, 1, call->n_out))
        return call->err->code;
    memset(counts, 0, (size_t)call->n_out * sizeof *counts);
    for (int64_t i = 0; i < tensor_count(partitions); i++)
        counts[((const int32_t *)partitions->data)[i]]++;
    return 0;
}

int dynamic_stitch_shape(struct kernel_call *call, struct shape *shape)
{
    int n = call->n_in / 2;
    int64_t count = 0;
    for (int i = 0; i < n; i++) {
        const struct tensor *indices = call->in[i];
        struct shape rows;
        if (row_shape(call, call->in[n + i], indices, &rows) ||
            rows_check(call, i, INT64_C(1) << 31))
            return call->err->code;
        if (i == 0)
            *shape = rows;
        if (!shape_equal(&rows, shape))
            return kernel_fail(call, "data %d has rows unlike those before: %s", i,
                               shape_text(&call->in[n + i]->shape));
        for (int64_t k = 0; k < tensor_count(indices); k++)
            if (((const int32_t *)indices->data)[k] >= count)
                count = (int64_t)((const int32_t *)indices->data)[k] + 1;
    }
    shape->dims[0] = count;
    return 0;
}
