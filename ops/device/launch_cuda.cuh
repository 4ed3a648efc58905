/* SPDX-License-Identifier: Apache-2.0
 *
 * Included by every `.cu` file. On the host, where tests run kernels one thread after the other,
 * <cuda_runtime.h> is that of tests/lib/cuda, with its own CUDA_LAUNCH and SHARED.
 */
#ifndef OPS_DEVICE_LAUNCH_CUDA_CUH
#define OPS_DEVICE_LAUNCH_CUDA_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "ops/device/launch_cuda.h"

#ifdef __CUDACC__
/* Starts a kernel (in parentheses, if its name has a comma) and returns the status. */
#define CUDA_LAUNCH(kernel, grid, block, shared, stream, ...)                                      \
    (kernel<<<grid, block, shared, stream>>>(__VA_ARGS__), static_cast<int>(cudaGetLastError()))

/* Shared memory of a block's threads: an array of `count` elements, or all that the launch
 * requested. Functions take it as a shared_pointer. */
#define SHARED(type, name, count) __shared__ type name[count]
#define SHARED_DYNAMIC(type, name)                                                                 \
    extern __shared__ __align__(16) unsigned char cuda_shared_bytes[];                             \
    type *name = reinterpret_cast<type *>(cuda_shared_bytes)
template <typename T> using shared_pointer = T *;

/* Used before a pointer is cast to a wider type: the tests check its alignment. */
#define ASSUME_ALIGNED(pointer, bytes) static_cast<void>(0)
#endif

#define CUDA_BLOCK 256 /* threads, unless a kernel says otherwise */
#define CUDA_WARP 32
#define CUDA_ALL_LANES 0xffffffffu
#define CUDA_GRID_MAX 16384u /* maximum blocks of grid-stride kernels */

/* Returns the blocks for n items, one thread each: at least one, and no more than useful. */
static inline unsigned cuda_blocks(int64_t n)
{
    int64_t blocks = (n + CUDA_BLOCK - 1) / CUDA_BLOCK;
    return blocks < 1 ? 1 : blocks > CUDA_GRID_MAX ? CUDA_GRID_MAX : static_cast<unsigned>(blocks);
}

/* Starts a kernel with a thread for each of n items, or fewer that take turns; nothing for none. */
#define CUDA_LAUNCH_EACH(kernel, n, stream, ...)                                                   \
    ((n) > 0 ? CUDA_LAUNCH(kernel, cuda_blocks(n), CUDA_BLOCK, 0, stream, __VA_ARGS__) : 0)

static __device__ __forceinline__ int64_t thread_index()
{
    return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ int64_t thread_count()
{
    return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

/* N elements that are moved at once, if they are aligned to their total size. */
template <typename T, int N> struct alignas(sizeof(T) * N) pack {
    T at[N];
};

template <int N, typename T> static __device__ __forceinline__ pack<T, N> load_pack(const T *from)
{
    ASSUME_ALIGNED(from, sizeof(pack<T, N>));
    return *reinterpret_cast<const pack<T, N> *>(from);
}

template <int N, typename T>
static __device__ __forceinline__ void store_pack(T *to, const pack<T, N> &value)
{
    ASSUME_ALIGNED(to, sizeof value);
    *reinterpret_cast<pack<T, N> *>(to) = value;
}

static inline bool is_aligned(const void *pointer, size_t bytes)
{
    return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

#endif
