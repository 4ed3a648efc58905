/* SPDX-License-Identifier: Apache-2.0
 *
 * ArgMax and ArgMin. If a line's elements are contiguous, a warp searches each line; otherwise
 * adjacent lines are contiguous, and a thread searches each line.
 */
#include "ops/device/types_cuda.cuh"
#include "ops/math/launchers_cuda.h"

template <typename W> struct best {
    W value;
    int64_t at; /* < 0: none yet */
};

template <bool max, typename W> DEVICE_INLINE bool goes_before(best<W> a, best<W> b)
{
    if (a.at < 0 || b.at < 0)
        return b.at < 0;
    bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan)
        return a_nan;
    if (a.value != b.value && !a_nan)
        return max ? a.value > b.value : a.value < b.value;
    return a.at < b.at;
}

DEVICE_INLINE void put(const struct cuda_arg &call, int64_t line, int64_t at)
{
    if (call.narrow)
        static_cast<int32_t *>(call.y)[line] = static_cast<int32_t>(at);
    else
        static_cast<int64_t *>(call.y)[line] = at;
}

template <bool max, typename T> static __global__ void arg_by_warps(const struct cuda_arg call)
{
    int lane = threadIdx.x % CUDA_WARP;
    int64_t warps = thread_count() / CUDA_WARP;
    for (int64_t line = thread_index() / CUDA_WARP; line < call.lines.outer; line += warps) {
        const T *x = static_cast<const T *>(call.x) + line * call.lines.n;
        best<wide<T>> mine = {wide<T>(), -1};
        for (int64_t i = lane; i < call.lines.n; i += CUDA_WARP) {
            best<wide<T>> next = {widen(x[i]), i};
            mine = goes_before<max>(mine, next) ? mine : next;
        }
        for (int step = CUDA_WARP / 2; step; step /= 2) {
            best<wide<T>> other = {__shfl_xor_sync(CUDA_ALL_LANES, mine.value, step),
                                   __shfl_xor_sync(CUDA_ALL_LANES, mine.at, step)};
            mine = goes_before<max>(mine, other) ? mine : other;
        }
        if (lane == 0)
            put(call, line, mine.at);
    }
}

template <bool max, typename T> static __global__ void arg_by_threads(const struct cuda_arg call)
{
    const cuda_lines lines = call.lines;
    for (int64_t i = thread_index(); i < lines.outer * lines.inner; i += thread_count()) {
        int64_t outer = i / lines.inner;
        const T *x = static_cast<const T *>(call.x) + outer * lines.n * lines.inner +
                     (i - outer * lines.inner);
        best<wide<T>> mine = {widen(x[0]), 0};
        for (int64_t k = 1; k < lines.n; k++) {
            best<wide<T>> next = {widen(x[k * lines.inner]), k};
            mine = goes_before<max>(mine, next) ? mine : next;
        }
        put(call, i, mine.at);
    }
}

template <bool max, typename T>
static int launch(const struct cuda_arg *call, struct CUstream_st *stream)
{
    int64_t lines = call->lines.outer * call->lines.inner;
    if (call->lines.inner == 1)
        return CUDA_LAUNCH_EACH((arg_by_warps<max, T>), lines * CUDA_WARP, stream, *call);
    return CUDA_LAUNCH_EACH((arg_by_threads<max, T>), lines, stream, *call);
}

extern "C" int cuda_arg(const struct cuda_arg *call, struct CUstream_st *stream)
{
    if (call->lines.n < 1)
        return CUDA_INVALID_VALUE;
    const cuda_type type = call->type == CUDA_BOOL ? CUDA_UINT8 : call->type;
    return launch_by_number(type, [&](auto e) {
        typedef typename decltype(e)::type type;
        return call->max ? launch<true, type>(call, stream) : launch<false, type>(call, stream);
    });
}
