/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels that distribute and merge rows. The row numbers are on the host, which derives
 * the sizes from them, and tells the device which rows to copy.
 */
#include "ops/array/results.h"

#include <string.h>

#include "ops/array/launchers_cuda.h"
#include "ops/array/strided.h"
#include "ops/device/kernel_cuda.h"

static void begin(struct cuda_row_moves *moves, enum dtype type, const struct shape *rows)
{
    moves->element_bytes = (int)dtype_bytes(type);
    moves->columns = shape_count_of(rows, 1, rows->rank);
    moves->n = 0;
}

/* Launches the moves. Returns KERNEL_ENQUEUED, or an error. */
static int flush(struct kernel_call *call, struct cuda_row_moves *moves)
{
    int result = cuda_move_rows(moves, cuda_compute(call));
    moves->n = 0;
    return cuda_launched(call, result);
}

static int move_row(struct kernel_call *call, struct cuda_row_moves *moves, int64_t to,
                    int64_t from)
{
    moves->rows[moves->n++] = (struct cuda_row_move){to, from};
    return moves->n == CUDA_ROW_MOVES ? flush(call, moves) : KERNEL_ENQUEUED;
}

/* ---- DynamicPartition ---- */

static int partition_run(struct kernel_call *call)
{
    const struct tensor *data = call->in[0];
    struct cuda_row_moves moves;
    struct shape rows;
    int64_t *counts = kernel_temporary(call, (size_t)call->n_out * sizeof *counts);
    if (!counts || dynamic_partition_counts(call, &rows, counts))
        return call->err->code;
    /* The numbers of the rows are sorted by the output that they go to. */
    const int32_t *partitions = call->in[1]->data;
    int64_t n = tensor_count(call->in[1]), end = 0;
    int64_t *sorted = kernel_temporary(call, (size_t)(n + 1) * sizeof *sorted);
    int64_t *next = kernel_temporary(call, (size_t)call->n_out * sizeof *next);
    if (!sorted || !next)
        return call->err->code;
    for (int k = 0; k < call->n_out; k++) {
        next[k] = end;
        end += counts[k];
    }
    for (int64_t i = 0; i < n; i++)
        sorted[next[partitions[i]]++] = i;
    begin(&moves, data->type, &rows);
    moves.from = data->data;
    int code = KERNEL_DONE;
    for (int k = 0; k < call->n_out && code <= 0; sorted += counts[k++]) {
        rows.dims[0] = counts[k];
        struct tensor *out = kernel_alloc_output(call, k, &rows);
        if (!out)
            return call->err->code;
        if (!tensor_count(out))
            continue;
        moves.to = out->data;
        code = KERNEL_ENQUEUED;
        for (int64_t i = 0; i < counts[k] && code == KERNEL_ENQUEUED; i++)
            code = move_row(call, &moves, i, sorted[i]);
        if (moves.n && code == KERNEL_ENQUEUED)
            code = flush(call, &moves);
    }
    return code;
}

const struct kernel_code kernel_cuda_dynamic_partition = {.run = partition_run};

/* ---- DynamicStitch ---- */

static int stitch_run(struct kernel_call *call)
{
    struct cuda_row_moves moves;
    struct tensor *out = dynamic_stitch_output(call);
    if (!out || !tensor_count(out))
        return call->err->code;
    /* For each output row, the last input row given for it, counted from 1. */
    size_t bytes = (size_t)out->shape.dims[0] * sizeof(int64_t);
    int64_t *last = kernel_temporary(call, bytes), given = 0;
    if (!last)
        return call->err->code;
    memset(last, 0, bytes);
    for (int i = 0; i < call->n_in / 2; i++) {
        const int32_t *indices = call->in[i]->data;
        for (int64_t k = 0; k < tensor_count(call->in[i]); k++)
            last[indices[k]] = ++given;
    }
    given = 0;
    begin(&moves, out->type, &out->shape);
    moves.to = out->data;
    int code = strided_fill_bits(call, out, 0);
    for (int i = 0; i < call->n_in / 2 && code <= 0; i++) {
        /* Moves the rows of data i that are the last for their output row. */
        const int32_t *indices = call->in[i]->data;
        int64_t n = tensor_count(call->in[i]);
        code = KERNEL_ENQUEUED;
        moves.from = call->in[call->n_in / 2 + i]->data;
        for (int64_t k = 0; k < n && code == KERNEL_ENQUEUED; k++)
            if (last[indices[k]] == given + k + 1)
                code = move_row(call, &moves, indices[k], k);
        if (moves.n && code == KERNEL_ENQUEUED)
            code = flush(call, &moves);
        given += n;
    }
    return code;
}

const struct kernel_code kernel_cuda_dynamic_stitch = {.run = stitch_run};
