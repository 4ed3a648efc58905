/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ops/array/results.h"
#include "ops/array/rows.h"
#include "ops/math/outputs.h"
#include "ops/math/parallel_cpu.h"

/* ---- Gather ---- */

#define PARALLEL_BYTES (1 << 18)

struct gather_work {
    char *to;
    const char *from;
    const struct tensor *indices;
    int64_t n;
    size_t row; /* bytes */
};

static void copy_rows(void *context, int part, int parts)
{
    const struct gather_work *all = context;
    const struct tensor *indices = all->indices;
    int64_t first = all->n * part / parts, last = all->n * (part + 1) / parts;
    char *to = all->to;
    const char *from = all->from;
    size_t row = all->row;
    const int32_t *i32 = indices->data;
    const int64_t *i64 = indices->data;
    bool wide = indices->type == INT64;
    for (int64_t i = first; i < last; i++) {
        const char *source = from + (size_t)(wide ? i64[i] : i32[i]) * row;
        if (row == 4)
            memcpy(to + (size_t)i * 4, source, 4);
        else if (row == 8)
            memcpy(to + (size_t)i * 8, source, 8);
        else
            memcpy(to + (size_t)i * row, source, row);
    }
}

static int gather_run(struct kernel_call *call)
{
    const struct tensor *params = call->in[0], *indices = call->in[1];
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out || rows_check(call, 1, params->shape.dims[0]))
        return call->err->code;
    int64_t n = tensor_count(indices);
    size_t bytes = tensor_bytes(out), row = n ? bytes / (size_t)n : 0;
    if (!bytes)
        return KERNEL_DONE;
    struct gather_work all = {out->data, params->data, indices, n, row};
    if (call->threads == 1 || bytes < PARALLEL_WORTH(PARALLEL_BYTES))
        copy_rows(&all, 0, 1);
    else
        team_run(call->threads, copy_rows, &all);
    return KERNEL_DONE;
}

const struct kernel_code kernel_gather = {.run = gather_run};

/* ---- UnsortedSegmentSum ---- */

static int segment_run(struct kernel_call *call)
{
    const struct tensor *data = call->in[0], *ids = call->in[1];
    struct tensor *out = result_outputs(call, 2, 3);
    if (!out || rows_check(call, 1, out->shape.dims[0]))
        return call->err->code;
    memset(out->data, 0, tensor_bytes(out));
    return rows_update(call, ROWS_ADD, out, ids, data);
}

const struct kernel_code kernel_unsorted_segment_sum = {.run = segment_run};
