/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cuda/lessons.h"

#include "ops/device/launch_cuda.cuh"

#define PARAMETERS const int n, const int *__restrict__ x, int *__restrict__ y
#define BLOCK_MAX 256

/* y is x from back to front, within each block. */
template <bool barrier, bool after> static __device__ void reverse_block(PARAMETERS)
{
    SHARED(int, tile, BLOCK_MAX);
    int from = blockIdx.x * blockDim.x, me = threadIdx.x, size = blockDim.x;
    for (int round = 0; round < 2; round++) {
        tile[me] = x[from + me];
        if (barrier)
            __syncthreads();
        y[from + me] = tile[size - 1 - me];
        if (after)
            __syncthreads();
    }
    (void)n;
}

static __global__ void reverse(PARAMETERS)
{
    reverse_block<true, true>(n, x, y);
}

static __global__ void no_barrier(PARAMETERS)
{
    reverse_block<false, true>(n, x, y);
}

static __global__ void no_barrier_after_read(PARAMETERS)
{
    reverse_block<true, false>(n, x, y);
}

/* y is x of the next lane, by way of shared memory. */
template <bool barrier> static __device__ void next_lane(PARAMETERS)
{
    SHARED(int, tile, BLOCK_MAX);
    int me = threadIdx.x, i = blockIdx.x * blockDim.x + me, warp = me / CUDA_WARP * CUDA_WARP;
    tile[me] = i < n ? x[i] : 0;
    if (barrier)
        __syncwarp();
    int other = tile[warp + (me + 1) % CUDA_WARP];
    if (i < n)
        y[i] = other;
    if (barrier)
        __syncwarp();
    tile[me] = 0;
}

static __global__ void lanes_in_turn(PARAMETERS)
{
    next_lane<true>(n, x, y);
}

static __global__ void no_barrier_in_warp(PARAMETERS)
{
    next_lane<false>(n, x, y);
}

static __global__ void neighbours(PARAMETERS)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = i < n ? x[i] : 0;
    int up = __shfl_up_sync(CUDA_ALL_LANES, value, 1);
    int down = __shfl_down_sync(CUDA_ALL_LANES, value, 1, 16);
    int first = __shfl_sync(CUDA_ALL_LANES, value, 0);
    int twin = __shfl_xor_sync(CUDA_ALL_LANES, value, 1);
    if (i < n)
        y[i] = up + 3 * down + 5 * first + 7 * twin;
}

/* y of a block's first element is the sum of the block. */
static __global__ void sum(PARAMETERS)
{
    SHARED(int, part, BLOCK_MAX / CUDA_WARP);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = i < n ? x[i] : 0;
    for (int step = CUDA_WARP / 2; step; step /= 2)
        value += __shfl_down_sync(CUDA_ALL_LANES, value, step);
    if (threadIdx.x % CUDA_WARP == 0)
        part[threadIdx.x / CUDA_WARP] = value;
    __syncthreads();
    if (threadIdx.x)
        return;
    value = 0;
    for (unsigned warp = 0; warp < blockDim.x / CUDA_WARP; warp++)
        value += part[warp];
    y[i] = value;
}

static __global__ void votes(PARAMETERS)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool odd = i < n && x[i] & 1;
    unsigned lanes = __ballot_sync(CUDA_ALL_LANES, odd);
    bool any = __any_sync(CUDA_ALL_LANES, odd), all = __all_sync(CUDA_ALL_LANES, odd);
    if (i < n)
        y[i] = static_cast<int>(lanes) ^ (any ? 2 : 0) ^ (all ? 4 : 0);
}

/* Whatever the order is: y[0] counts the odd ones, y[1] is the largest, y[2] the sum. */
static __global__ void count(PARAMETERS)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    if (x[i] & 1)
        atomicAdd(&y[0], 1);
    atomicMax(&y[1], x[i]);
    for (int seen = y[2], was;; seen = was)
        if ((was = atomicCAS(&y[2], seen, seen + x[i])) == seen)
            break;
}

/* The order in which threads come: different under different seeds. */
static __global__ void order(PARAMETERS)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = atomicAdd(&y[n], 1) + (x[i] & 0);
}

static __global__ void global_order(PARAMETERS)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] + (i ? y[i - 1] : 0);
}

static __global__ void global_beyond(PARAMETERS)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        y[i] = x[i];
}

static __global__ void early_leaver(PARAMETERS)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __syncthreads();
    y[i] = x[i];
}

static __global__ void two_barriers(PARAMETERS)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 2)
        __syncthreads();
    else
        __syncthreads();
    y[i] = x[i];
}

static __global__ void barrier_and_shuffle(PARAMETERS)
{
    int i = threadIdx.x, value = x[i];
    if (i == n / 2)
        __syncthreads();
    else
        value = __shfl_xor_sync(CUDA_ALL_LANES, value, 1);
    y[i] = value;
}

static __global__ void absent_lane(PARAMETERS)
{
    if (threadIdx.x != 7)
        y[threadIdx.x] = __shfl_sync(CUDA_ALL_LANES, x[threadIdx.x], n - n);
}

static __global__ void wrong_mask(PARAMETERS)
{
    y[threadIdx.x] = __shfl_xor_sync(0xffff, x[threadIdx.x], n & 1);
}

static __global__ void other_mask(PARAMETERS)
{
    unsigned mask = threadIdx.x % 2 ? CUDA_ALL_LANES : CUDA_ALL_LANES ^ 2;
    y[threadIdx.x] = __ballot_sync(mask, x[threadIdx.x] < n);
}

static __global__ void foreign_lane(PARAMETERS)
{
    if (threadIdx.x < 16)
        y[threadIdx.x] = __shfl_sync(0xffff, x[threadIdx.x], n);
}

template <int offset> static __device__ void write_at(PARAMETERS)
{
    SHARED(int, tile, 32);
    tile[static_cast<int>(threadIdx.x) + offset] = x[threadIdx.x];
    y[threadIdx.x] = tile[static_cast<int>(threadIdx.x) + offset] + n;
}

static __global__ void shared_beyond(PARAMETERS)
{
    write_at<1>(n, x, y);
}

static __global__ void shared_before(PARAMETERS)
{
    write_at<-1>(n, x, y);
}

static __global__ void shared_unwritten(PARAMETERS)
{
    SHARED(int, tile, BLOCK_MAX);
    if (threadIdx.x % 2)
        tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = tile[threadIdx.x] + n;
}

static __global__ void shared_too_large(PARAMETERS)
{
    SHARED(int, tile, 12289);
    tile[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = tile[threadIdx.x] + n;
}

static __global__ void dynamic_beyond(PARAMETERS)
{
    SHARED_DYNAMIC(int, tile);
    tile[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = tile[threadIdx.x] + n;
}

static __global__ void crooked_pack(PARAMETERS)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i + 4 < n)
        store_pack(y + 4 * i, load_pack<4>(x + 4 * i + 1));
}

/* 16 bytes of dynamic memory less than there are threads. */
#define X(name)                                                                                    \
    extern "C" int cuda_lesson_##name(const struct cuda_lesson *lesson,                            \
                                      struct CUstream_st *stream)                                  \
    {                                                                                              \
        unsigned grid = static_cast<unsigned>((lesson->n + lesson->block - 1) / lesson->block);    \
        size_t shared = sizeof(int) * static_cast<size_t>(lesson->block) - 16;                     \
        return CUDA_LAUNCH(name, grid, static_cast<unsigned>(lesson->block), shared, stream,       \
                           lesson->n, lesson->x, lesson->y);                                       \
    }
CUDA_LESSONS(X)

extern "C" void cuda_lesson_widen(const uint16_t *bits, int n, float *half, float *brain)
{
    for (int i = 0; i < n; i++) {
        half[i] = __half2float(__ushort_as_half(bits[i]));
        brain[i] = __bfloat162float(__ushort_as_bfloat16(bits[i]));
    }
}

extern "C" void cuda_lesson_narrow(const float *x, int n, uint16_t *half, uint16_t *brain)
{
    for (int i = 0; i < n; i++) {
        half[i] = __half_as_ushort(__float2half_rn(x[i]));
        brain[i] = __bfloat16_as_ushort(__float2bfloat16_rn(x[i]));
    }
}
