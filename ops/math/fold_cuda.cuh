/* SPDX-License-Identifier: Apache-2.0
 *
 * Folds the values of the threads of a warp or block, in a fixed order.
 */
#ifndef OPS_MATH_FOLD_CUDA_CUH
#define OPS_MATH_FOLD_CUDA_CUH

#include "ops/device/types_cuda.cuh"

#define FOLD_WARPS (CUDA_BLOCK / CUDA_WARP)

/* The value of the lane `step` further on. Narrow types go as an int, 128 bits in two parts. */
template <typename T> DEVICE_INLINE T shuffle_down(T value, unsigned step)
{
    if constexpr (sizeof(T) < sizeof(int))
        return static_cast<T>(__shfl_down_sync(CUDA_ALL_LANES, static_cast<int>(value), step));
    else if constexpr (sizeof(T) > sizeof(uint64_t)) {
        uint64_t low = static_cast<uint64_t>(value), high = static_cast<uint64_t>(value >> 64);
        low = __shfl_down_sync(CUDA_ALL_LANES, low, step);
        high = __shfl_down_sync(CUDA_ALL_LANES, high, step);
        return static_cast<T>(static_cast<unsigned __int128>(high) << 64 | low);
    } else
        return __shfl_down_sync(CUDA_ALL_LANES, value, step);
}

/* Folds the values of a warp; lane 0 gets the result. */
template <typename Op, typename T> DEVICE_INLINE T fold_warp(T value)
{
    for (unsigned step = CUDA_WARP / 2; step; step /= 2)
        value = Op::combine(value, shuffle_down(value, step));
    return value;
}

/* Folds the values of a block of CUDA_BLOCK threads; thread 0 gets the result. `part` has
 * FOLD_WARPS elements, and may be reused when all threads have returned. */
template <typename Op, typename T> DEVICE_INLINE T fold_block(T value, shared_pointer<T> part)
{
    int warp = threadIdx.x / CUDA_WARP;
    value = fold_warp<Op>(value);
    if (threadIdx.x % CUDA_WARP == 0)
        part[warp] = value;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = 1; i < FOLD_WARPS; i++)
            value = Op::combine(value, static_cast<T>(part[i]));
    __syncthreads();
    return value;
}

#endif
