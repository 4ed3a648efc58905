/* SPDX-License-Identifier: Apache-2.0
 *
 * One block per row. Its threads search k times for the first element after the one found before,
 * in an order in which no two are equal.
 */
#include "ops/nn/launchers_cuda.h"

#include <cmath>

#include "ops/math/fold_cuda.cuh"

#define NONE (-1) /* no element */

template <typename T> DEVICE_INLINE bool is_before(const T *x, int32_t i, int32_t j)
{
    wide<T> a = widen(x[i]), b = widen(x[j]);
    bool a_nan = a != a, b_nan = b != b;
    if (a_nan || b_nan)
        return a_nan && b_nan ? i < j : a_nan;
    return a > b || (a == b && i < j);
}

template <typename T> DEVICE_INLINE int32_t first_of(const T *x, int32_t i, int32_t j)
{
    if (i == NONE || j == NONE)
        return i == NONE ? j : i;
    return is_before(x, i, j) ? i : j;
}

/* Returns the first element after `last`, in all threads. */
template <typename T>
DEVICE_INLINE int32_t next_of(const T *x, int64_t n, int32_t last, shared_pointer<int32_t> best)
{
    int32_t found = NONE;
    for (int64_t i = threadIdx.x; i < n; i += CUDA_BLOCK)
        if (last == NONE || is_before(x, last, static_cast<int32_t>(i)))
            found = first_of(x, found, static_cast<int32_t>(i));
    best[threadIdx.x] = found;
    for (unsigned half = CUDA_BLOCK / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            best[threadIdx.x] = first_of(x, static_cast<int32_t>(best[threadIdx.x]),
                                         static_cast<int32_t>(best[threadIdx.x + half]));
    }
    __syncthreads();
    found = best[0];
    __syncthreads();
    return found;
}

template <typename T> static __global__ void top_k(const struct cuda_top_k call)
{
    SHARED(int32_t, best, CUDA_BLOCK);
    for (int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
        const T *x = static_cast<const T *>(call.x) + row * call.n;
        T *values = static_cast<T *>(call.values) + row * call.k;
        int32_t last = NONE;
        for (int64_t i = 0; i < call.k; i++) {
            last = next_of(x, call.n, last, best);
            if (threadIdx.x == 0) {
                values[i] = x[last];
                call.indices[row * call.k + i] = last;
            }
        }
    }
}

extern "C" int cuda_top_k(const struct cuda_top_k *call, struct CUstream_st *stream)
{
    return launch_by_number(call->type, [&](auto like) {
        typedef typename decltype(like)::type T;
        return CUDA_LAUNCH_EACH(top_k<T>, call->rows * CUDA_BLOCK, stream, *call);
    });
}

/* ---- InTopK ---- */

DEVICE_INLINE int64_t target_of(const struct cuda_in_top_k &call, int64_t row)
{
    return call.wide_targets ? static_cast<const int64_t *>(call.targets)[row]
                             : static_cast<const int32_t *>(call.targets)[row];
}

/* One warp per row. */
template <typename T> static __global__ void in_top_k(const struct cuda_in_top_k call)
{
    int lane = threadIdx.x % CUDA_WARP;
    for (int64_t row = thread_index() / CUDA_WARP; row < call.rows;
         row += thread_count() / CUDA_WARP) {
        const T *x = static_cast<const T *>(call.predictions) + row * call.n;
        int64_t target = target_of(call, row);
        bool is_known = target >= 0 && target < call.n, finite = is_known;
        wide<T> own = finite ? widen(x[target]) : 0;
        unsigned long long better = 0;
        for (int64_t i = lane; i < call.n && finite; i += CUDA_WARP) {
            wide<T> other = widen(x[i]);
            finite = isfinite(other);
            better += other > own;
        }
        finite = __all_sync(CUDA_ALL_LANES, finite);
        for (unsigned step = CUDA_WARP / 2; step; step /= 2)
            better += shuffle_down(better, step);
        if (lane == 0)
            call.out[row] = finite && static_cast<int64_t>(better) < call.k;
    }
}

extern "C" int cuda_in_top_k(const struct cuda_in_top_k *call, struct CUstream_st *stream)
{
    return launch_by_float(call->type, [&](auto like) {
        typedef typename decltype(like)::type T;
        return CUDA_LAUNCH_EACH(in_top_k<T>, call->rows * CUDA_WARP, stream, *call);
    });
}
