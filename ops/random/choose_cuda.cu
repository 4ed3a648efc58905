/* SPDX-License-Identifier: Apache-2.0
 *
 * An order is computed by one thread, from numbers that all threads have drawn: each place depends
 * on the one before. For classes, a block sums a row's probabilities, then a thread per sample
 * searches its class.
 */
#include "ops/random/launchers_cuda.h"

#include <cmath>

#include "ops/random/stream_cuda.cuh"

/* ---- an order ---- */

static __global__ void draw_places(const struct cuda_shuffle call)
{
    const struct philox_stream stream = stream_of(call.place);
    for (int64_t i = thread_index(); i < call.n; i += thread_count()) {
        uint32_t words[2];
        philox_words(&stream, i, words);
        call.order[i] = i;
        call.scratch[i] =
            static_cast<int64_t>(uniform_integer(words, static_cast<uint64_t>(i) + 1));
    }
}

static __global__ void swap_places(const struct cuda_shuffle call)
{
    if (thread_index())
        return;
    for (int64_t i = call.n - 1; i > 0; i--) {
        int64_t k = call.scratch[i], kept = call.order[i];
        call.order[i] = call.order[k];
        call.order[k] = kept;
    }
}

extern "C" int cuda_shuffle(const struct cuda_shuffle *call, struct CUstream_st *stream)
{
    int result = CUDA_LAUNCH_EACH(draw_places, call->n, stream, *call);
    return result ? result : CUDA_LAUNCH(swap_places, 1, CUDA_WARP, 0, stream, *call);
}

/* ---- classes ---- */

/* fmax ignores NaN, as on the CPU. */
template <typename T>
DEVICE_INLINE double largest_of(const T *logits, int64_t n, shared_pointer<double> part)
{
    double most = -INFINITY;
    for (int64_t i = threadIdx.x; i < n; i += CUDA_BLOCK)
        most = fmax(most, static_cast<double>(widen(logits[i])));
    part[threadIdx.x] = most;
    for (unsigned half = CUDA_BLOCK / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] = fmax(part[threadIdx.x], part[threadIdx.x + half]);
    }
    __syncthreads();
    most = part[0];
    __syncthreads();
    return most;
}

/* sums[k] = sum of exp(logit - largest) over classes 0 to k: each thread sums a stretch of them,
 * starting from the sum before it. */
template <typename T> static __global__ void cumulate(const struct cuda_multinomial call)
{
    SHARED(double, part, CUDA_BLOCK);
    for (int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
        const T *logits = static_cast<const T *>(call.logits) + row * call.classes;
        double *sums = call.scratch + row * call.classes, sum = 0;
        double largest = largest_of(logits, call.classes, part);
        int64_t begin = call.classes * threadIdx.x / CUDA_BLOCK;
        int64_t end = call.classes * (threadIdx.x + 1) / CUDA_BLOCK;
        for (int64_t i = begin; i < end; i++)
            sum += exp(static_cast<double>(widen(logits[i])) - largest);
        part[threadIdx.x] = sum;
        __syncthreads();
        double before = 0;
        for (unsigned i = 0; i < threadIdx.x; i++)
            before += part[i];
        for (int64_t i = begin; i < end; i++)
            sums[i] = before += exp(static_cast<double>(widen(logits[i])) - largest);
        bool possible = isfinite(largest) && isfinite(before) && before > 0;
        if (threadIdx.x == CUDA_BLOCK - 1 && !possible)
            leave_fault(call.fault, FAULT_CLASSES, row);
        __syncthreads();
    }
}

static __global__ void choose_classes(const struct cuda_multinomial call)
{
    const struct philox_stream stream = stream_of(call.place);
    for (int64_t i = thread_index(); i < call.rows * call.samples; i += thread_count()) {
        const double *sums = call.scratch + i / call.samples * call.classes;
        uint32_t words[2];
        philox_words(&stream, i, words);
        call.out[i] = random_class(sums, call.classes, words);
    }
}

extern "C" int cuda_multinomial(const struct cuda_multinomial *call, struct CUstream_st *stream)
{
    int64_t n = call->rows * call->samples;
    unsigned rows = cuda_blocks(call->rows * CUDA_BLOCK);
    if (!n)
        return 0;
    int result = launch_by_number(call->type, [&](auto like) {
        typedef typename decltype(like)::type T;
        return CUDA_LAUNCH(cumulate<T>, rows, CUDA_BLOCK, 0, stream, *call);
    });
    if (result)
        return result;
    return CUDA_LAUNCH_EACH(choose_classes, n, stream, *call);
}
