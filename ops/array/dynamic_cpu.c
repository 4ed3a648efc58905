/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/memory.h"
#include "ops/array/args.h"
#include "ops/array/rows.h"

/* The shape [n] and what is left of data's after that of the indices; 0, or an error. */
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

static size_t row_bytes(const struct shape *rows, enum dtype type)
{
    size_t bytes = dtype_bytes(type);
    for (int i = 1; i < rows->rank; i++)
        bytes *= (size_t)rows->dims[i];
    return bytes;
}

/* ---- DynamicPartition ---- */

static int partition_run(struct kernel_call *call)
{
    const struct tensor *data = call->in[0], *partitions = call->in[1];
    const int32_t *to = partitions->data;
    int64_t n = tensor_count(partitions);
    struct shape rows;
    if (row_shape(call, data, partitions, &rows) || rows_check(call, 1, call->n_out))
        return call->err->code;
    char **next = kernel_temporary(call, (size_t)call->n_out * sizeof *next);
    int64_t *counts = kernel_temporary(call, (size_t)call->n_out * sizeof *counts);
    if (!next || !counts)
        return call->err->code;
    memset(counts, 0, (size_t)call->n_out * sizeof *counts);
    for (int64_t i = 0; i < n; i++)
        counts[to[i]]++;
    for (int k = 0; k < call->n_out; k++) {
        rows.dims[0] = counts[k];
        struct tensor *out = kernel_alloc_output(call, k, &rows);
        if (!out)
            return call->err->code;
        next[k] = out->data;
    }
    size_t row = row_bytes(&rows, data->type);
    for (int64_t i = 0; row && i < n; i++, next[to[i - 1]] += row)
        memcpy(next[to[i]], (const char *)data->data + (size_t)i * row, row);
    return KERNEL_DONE;
}

const struct kernel_code kernel_dynamic_partition = {.run = partition_run};

/* ---- DynamicStitch ---- */

/* One more than the largest index; the pairs are checked on the way. */
static int stitched_shape(struct kernel_call *call, struct shape *shape)
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

static int stitch_run(struct kernel_call *call)
{
    struct shape shape;
    int n = call->n_in / 2;
    if (stitched_shape(call, &shape))
        return call->err->code;
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    memset(out->data, 0, tensor_bytes(out));
    int code = 0;
    for (int i = 0; i < n && !code; i++)
        code = rows_update(call, ROWS_SET, out, call->in[i], call->in[n + i]);
    return code;
}

const struct kernel_code kernel_dynamic_stitch = {.run = stitch_run};
