/* SPDX-License-Identifier: Apache-2.0
 *
 * MatrixBandPart: a thread per element or pack. A pack is within a row.
 */
#include "ops/matrix/launchers_cuda.h"

#include "ops/device/types_cuda.cuh"

template <typename T, int N> static __global__ void band(const struct cuda_band call)
{
    const struct band &of = call.band;
    const T *x = static_cast<const T *>(call.x);
    T *y = static_cast<T *>(call.y);
    for (int64_t i = thread_index() * N; i < call.n; i += thread_count() * N) {
        int64_t line = i / of.columns, column = i - line * of.columns, row = line % of.rows;
        pack<T, N> values = load_pack<N>(x + i);
        for (int k = 0; k < N; k++)
            if (column + k < row - of.lower || column + k > row + of.upper)
                values.at[k] = 0;
        store_pack(y + i, values);
    }
}

template <typename T>
static int launch_band(const struct cuda_band *call, struct CUstream_st *stream)
{
    constexpr int N = 16 / sizeof(T);
    bool packs = call->band.columns % N == 0 && is_aligned(call->x, 16) && is_aligned(call->y, 16);
    if (packs)
        return CUDA_LAUNCH_EACH((band<T, N>), call->n / N, stream, *call);
    return CUDA_LAUNCH_EACH((band<T, 1>), call->n, stream, *call);
}

extern "C" int cuda_band(const struct cuda_band *call, struct CUstream_st *stream)
{
    return launch_by_size(call->element_bytes, [&](auto e) {
        return launch_band<typename decltype(e)::type>(call, stream);
    });
}
