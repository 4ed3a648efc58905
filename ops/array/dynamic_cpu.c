/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/array/results.h"

#include <string.h>

#include "ops/array/rows.h"

/* ---- DynamicPartition ---- */

static int partition_run(struct kernel_call *call)
{
    const struct tensor *data = call->in[0], *partitions = call->in[1];
    const int32_t *to = partitions->data;
    int64_t n = tensor_count(partitions);
    struct shape rows;
    char **next = kernel_temporary(call, (size_t)call->n_out * sizeof *next);
    int64_t *counts = kernel_temporary(call, (size_t)call->n_out * sizeof *counts);
    if (!next || !counts || dynamic_partition_counts(call, &rows, counts))
        return call->err->code;
    for (int k = 0; k < call->n_out; k++) {
        rows.dims[0] = counts[k];
        struct tensor *out = kernel_alloc_output(call, k, &rows);
        if (!out)
            return call->err->code;
        next[k] = out->data;
    }
    size_t row = (size_t)shape_count_of(&rows, 1, rows.rank) * dtype_bytes(data->type);
    for (int64_t i = 0; row && i < n; i++, next[to[i - 1]] += row)
        memcpy(next[to[i]], (const char *)data->data + (size_t)i * row, row);
    return KERNEL_DONE;
}

const struct kernel_code kernel_dynamic_partition = {.run = partition_run};

/* ---- DynamicStitch ---- */

static int stitch_run(struct kernel_call *call)
{
    int n = call->n_in / 2;
    struct tensor *out = dynamic_stitch_output(call);
    if (!out)
        return call->err->code;
    memset(out->data, 0, tensor_bytes(out));
    int code = 0;
    for (int i = 0; i < n && !code; i++)
        code = rows_update(call, ROWS_SET, out, call->in[i], call->in[n + i]);
    return code;
}

const struct kernel_code kernel_dynamic_stitch = {.run = stitch_run};
