/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of rows: a thread per element or pack written.
 */
#include "ops/array/launchers_cuda.h"

#include "ops/device/types_cuda.cuh"

template <typename T, int N> static __global__ void move_rows(const struct cuda_row_moves call)
{
    const T *from = static_cast<const T *>(call.from);
    T *to = static_cast<T *>(call.to);
    int64_t packs = call.columns / N;
    for (int64_t i = thread_index(); i < call.n * packs; i += thread_count()) {
        int64_t k = i / packs, column = (i - k * packs) * N;
        const cuda_row_move &row = call.rows[k];
        store_pack(to + row.to * call.columns + column,
                   load_pack<N>(from + row.from * call.columns + column));
    }
}

template <typename T>
static int launch_moves(const struct cuda_row_moves *call, struct CUstream_st *stream)
{
    constexpr int N = 16 / sizeof(T);
    int64_t count = call->n * call->columns;
    if (call->columns % N == 0 && is_aligned(call->from, 16) && is_aligned(call->to, 16))
        return CUDA_LAUNCH_EACH((move_rows<T, N>), count / N, stream, *call);
    return CUDA_LAUNCH_EACH((move_rows<T, 1>), count, stream, *call);
}

extern "C" int cuda_move_rows(const struct cuda_row_moves *call, struct CUstream_st *stream)
{
    return launch_by_size(call->element_bytes, [&](auto e) {
        return launch_moves<typename decltype(e)::type>(call, stream);
    });
}
