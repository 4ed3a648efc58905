/* SPDX-License-Identifier: Apache-2.0
 *
 * Scatter updates without a race: pairs of row and position are sorted, then one thread per column
 * adds a row's values in the order of positions. The sort is bitonic; as positions make all pairs
 * different, the result is unique. Stages within a tile use shared memory.
 */
#include <cstring>

#include "ops/array/indices_cuda.cuh"

#define TILE 1024 /* pairs in shared memory */

struct row_pair {
    int64_t row, position;
};

DEVICE_INLINE bool is_before(const row_pair &a, const row_pair &b)
{
    return a.row != b.row ? a.row < b.row : a.position < b.position;
}

/* Lists the pairs, padded to a power of two; or reports an error. */
static __global__ void list_pairs(const struct cuda_scatter call, row_pair *pairs, int64_t length)
{
    for (int64_t i = thread_index(); i < length; i += thread_count()) {
        pairs[i] = {limits_of<int64_t>::most + 0, i};
        if (i >= call.indices.n)
            continue;
        int64_t row = index_at(call.indices, i);
        pairs[i].row = row;
        if (row < 0 || row >= call.rows)
            leave_fault(call.fault, FAULT_INDEX, i, row, call.rows);
    }
}

/* Returns whether pairs i and i + step are in the wrong order for their run of `run`. */
DEVICE_INLINE bool is_wrong(const row_pair &first, const row_pair &second, int64_t i, int64_t run)
{
    return is_before(second, first) == ((i & run) == 0);
}

static __global__ void sort_far(row_pair *pairs, int64_t length, int64_t run, int64_t step)
{
    for (int64_t k = thread_index(); k < length / 2; k += thread_count()) {
        int64_t i = k / step * 2 * step + k % step;
        row_pair first = pairs[i], second = pairs[i + step];
        if (is_wrong(first, second, i, run)) {
            pairs[i] = second;
            pairs[i + step] = first;
        }
    }
}

/* Does all steps of the runs from `least` to `most` that stay within a tile. */
static __global__ void sort_tiles(row_pair *pairs, int64_t length, int64_t least, int64_t most)
{
    SHARED(row_pair, tile, TILE);
    int size = length < TILE ? static_cast<int>(length) : TILE;
    int64_t at = static_cast<int64_t>(blockIdx.x) * TILE;
    for (int i = threadIdx.x; i < size; i += CUDA_BLOCK)
        tile[i] = pairs[at + i];
    __syncthreads();
    for (int64_t run = least; run <= most; run *= 2)
        for (int step = run / 2 < size / 2 ? static_cast<int>(run / 2) : size / 2; step;
             step /= 2) {
            for (int k = threadIdx.x; k < size / 2; k += CUDA_BLOCK) {
                int i = k / step * 2 * step + k % step;
                row_pair first = tile[i], second = tile[i + step];
                if (is_wrong(first, second, at + i, run)) {
                    tile[i] = second;
                    tile[i + step] = first;
                }
            }
            __syncthreads();
        }
    for (int i = threadIdx.x; i < size; i += CUDA_BLOCK)
        pairs[at + i] = tile[i];
}

/* One thread per column of each pair; it updates the row if the pair is the row's first. */
template <typename T>
static __global__ void update_rows(const struct cuda_scatter call, const row_pair *pairs)
{
    typedef std::conditional_t<is_floating<T>, double, twin<wide<T>>> A;
    const T *values = static_cast<const T *>(call.values);
    T *table = static_cast<T *>(call.table);
    if (has_failed(call.fault.at))
        return;
    int64_t count = call.indices.n * call.columns;
    for (int64_t k = thread_index(); k < count; k += thread_count()) {
        int64_t i = k / call.columns, column = k - i * call.columns, row = pairs[i].row;
        if (i && pairs[i - 1].row == row)
            continue;
        A sum = 0;
        for (; i < call.indices.n && pairs[i].row == row; i++)
            sum += static_cast<A>(widen(values[pairs[i].position * call.columns + column]));
        T *to = table + row * call.columns + column;
        A before = static_cast<A>(widen(*to));
        *to = narrow<T>(
            static_cast<wide<T>>(call.op == CUDA_SCATTER_ADD ? before + sum : before - sum));
    }
}

template <typename T>
static __global__ void set_rows(const struct cuda_scatter call, const row_pair *pairs)
{
    const T *values = static_cast<const T *>(call.values);
    if (has_failed(call.fault.at))
        return;
    int64_t count = call.indices.n * call.columns;
    for (int64_t k = thread_index(); k < count; k += thread_count()) {
        int64_t i = k / call.columns, column = k - i * call.columns, row = pairs[i].row;
        if (i + 1 == call.indices.n || pairs[i + 1].row != row)
            static_cast<T *>(call.table)[row * call.columns + column] =
                values[pairs[i].position * call.columns + column];
    }
}

static int64_t length_for(int64_t n)
{
    int64_t length = 1;
    while (length < n)
        length *= 2;
    return length;
}

static int sort_pairs(row_pair *pairs, int64_t length, struct CUstream_st *stream)
{
    unsigned tiles = static_cast<unsigned>((length + TILE - 1) / TILE);
    int64_t within = length < TILE ? length : TILE;
    int result =
        CUDA_LAUNCH(sort_tiles, tiles, CUDA_BLOCK, 0, stream, pairs, length, int64_t{2}, within);
    for (int64_t run = 2 * TILE; !result && run <= length; run *= 2) {
        for (int64_t step = run / 2; !result && step >= TILE; step /= 2)
            result = CUDA_LAUNCH_EACH(sort_far, length / 2, stream, pairs, length, run, step);
        if (!result)
            result = CUDA_LAUNCH(sort_tiles, tiles, CUDA_BLOCK, 0, stream, pairs, length, run, run);
    }
    return result;
}

template <typename T> static int launch(const struct cuda_scatter *call, struct CUstream_st *stream)
{
    row_pair *pairs = static_cast<row_pair *>(call->scratch);
    int64_t n = call->indices.n * call->columns;
    if constexpr (is_number<T>)
        if (call->op != CUDA_SCATTER_SET)
            return CUDA_LAUNCH_EACH(update_rows<T>, n, stream, *call, pairs);
    if (call->op != CUDA_SCATTER_SET)
        return CUDA_INVALID_VALUE;
    return CUDA_LAUNCH_EACH(set_rows<T>, n, stream, *call, pairs);
}

extern "C" size_t cuda_scatter_scratch(int64_t n)
{
    return sizeof(row_pair) * static_cast<size_t>(length_for(n));
}

extern "C" int cuda_scatter(const struct cuda_scatter *call, struct CUstream_st *stream)
{
    row_pair *pairs = static_cast<row_pair *>(call->scratch);
    int64_t length = length_for(call->indices.n);
    if (!call->indices.n)
        return 0;
    int result = CUDA_LAUNCH_EACH(list_pairs, length, stream, *call, pairs, length);
    if (!result)
        result = sort_pairs(pairs, length, stream);
    if (result)
        return result;
    return launch_by_any(
        call->type, [&](auto like) { return launch<typename decltype(like)::type>(call, stream); });
}
