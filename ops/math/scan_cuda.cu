/* SPDX-License-Identifier: Apache-2.0
 *
 * Cumsum and Cumprod. A line of contiguous elements is scanned by a block, tile by tile: each warp
 * scans its part, then adds the totals of the warps and tiles before. Otherwise adjacent lines are
 * contiguous, and each is scanned by a thread.
 */
#include "ops/math/fold_cuda.cuh"
#include "ops/math/launchers_cuda.h"

template <typename W>
using carried = std::conditional_t<std::is_floating_point<W>::value, double, twin<W>>;

template <typename A, bool product> struct scan_op {
    static constexpr A identity = product ? 1 : 0;
    static __device__ __forceinline__ A combine(A a, A b)
    {
        return product ? a * b : a + b;
    }
};

/* Returns the fold of the lane's value and all before it in the warp. */
template <typename Op, typename A> DEVICE_INLINE A scan_warp(A value)
{
    int lane = threadIdx.x % CUDA_WARP;
    for (int step = 1; step < CUDA_WARP; step *= 2) {
        A before = __shfl_up_sync(CUDA_ALL_LANES, value, static_cast<unsigned>(step));
        if (lane >= step)
            value = Op::combine(before, value);
    }
    return value;
}

template <typename Op, typename T, typename A>
static __global__ void scan_by_blocks(const struct cuda_scan call)
{
    SHARED(A, totals, FOLD_WARPS);
    int lane = threadIdx.x % CUDA_WARP, warp = threadIdx.x / CUDA_WARP;
    int64_t n = call.lines.n;
    for (int64_t line = blockIdx.x; line < call.lines.outer; line += gridDim.x) {
        A carry = Op::identity;
        for (int64_t tile = 0; tile < n; tile += CUDA_BLOCK) {
            int64_t i = tile + threadIdx.x;
            int64_t at = line * n + (call.reverse ? n - 1 - i : i);
            A own =
                i < n ? static_cast<A>(widen(static_cast<const T *>(call.x)[at])) : Op::identity;
            A value = scan_warp<Op>(own);
            A before = __shfl_up_sync(CUDA_ALL_LANES, value, 1u);
            if (lane == CUDA_WARP - 1)
                totals[warp] = value;
            __syncthreads();
            A front = carry;
            for (int w = 0; w < FOLD_WARPS; w++) {
                A total = totals[w];
                front = w < warp ? Op::combine(front, total) : front;
                carry = Op::combine(carry, total);
            }
            if (call.exclusive)
                value = lane ? Op::combine(front, before) : front;
            else
                value = Op::combine(front, value);
            if (i < n)
                static_cast<T *>(call.y)[at] = narrow<T>(static_cast<wide<T>>(value));
            __syncthreads();
        }
    }
}

template <typename Op, typename T, typename A>
static __global__ void scan_by_threads(const struct cuda_scan call)
{
    const cuda_lines lines = call.lines;
    int64_t step = call.reverse ? -lines.inner : lines.inner;
    for (int64_t i = thread_index(); i < lines.outer * lines.inner; i += thread_count()) {
        int64_t outer = i / lines.inner, first = call.reverse ? lines.n - 1 : 0;
        int64_t at = (outer * lines.n + first) * lines.inner + (i - outer * lines.inner);
        A sum = Op::identity;
        for (int64_t k = 0; k < lines.n; k++, at += step) {
            A before = sum;
            sum = Op::combine(sum, static_cast<A>(widen(static_cast<const T *>(call.x)[at])));
            static_cast<T *>(call.y)[at] =
                narrow<T>(static_cast<wide<T>>(call.exclusive ? before : sum));
        }
    }
}

template <bool product, typename T>
static int launch(const struct cuda_scan *call, struct CUstream_st *stream)
{
    typedef carried<wide<T>> A;
    typedef scan_op<A, product> Op;
    const struct cuda_lines *lines = &call->lines;
    int64_t count = lines->outer * lines->inner;
    if (!count || !lines->n)
        return 0;
    unsigned blocks = count > CUDA_GRID_MAX ? CUDA_GRID_MAX : static_cast<unsigned>(count);
    if (lines->inner == 1)
        return CUDA_LAUNCH((scan_by_blocks<Op, T, A>), blocks, CUDA_BLOCK, 0, stream, *call);
    return CUDA_LAUNCH_EACH((scan_by_threads<Op, T, A>), count, stream, *call);
}

extern "C" int cuda_scan(const struct cuda_scan *call, struct CUstream_st *stream)
{
    return launch_by_number(call->type, [&](auto e) {
        typedef typename decltype(e)::type type;
        return call->product ? launch<true, type>(call, stream) : launch<false, type>(call, stream);
    });
}
