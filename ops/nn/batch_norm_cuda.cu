/* SPDX-License-Identifier: Apache-2.0
 *
 * Three kernels. The first splits the positions into parts, and sums two terms per channel in each
 * part. The second adds the parts, one thread per channel, and computes from them what the third
 * needs per element. The variance is computed from differences to the channel's first element, so
 * that a large mean does not cost precision.
 */
#include "ops/nn/launchers_cuda.h"

#include "ops/device/types_cuda.cuh"

#define PARTS_MAX 64
#define PART_POSITIONS 32 /* minimum per thread */
#define LANE_CHANNELS 32  /* of a block, if channels are adjacent */

namespace
{
/* The two terms that are summed: for the gradient g and g (x - mean), else x - first and its
 * square, where `first` is the channel's first element. */
struct norm_terms {
    double a, b;
};

/* The grid of the first kernel. */
struct norm_grid {
    int64_t count; /* positions of a channel */
    int width;     /* channels of a block */
    int64_t parts;
};
} // namespace

static inline norm_grid grid_of(int64_t outer, int64_t inner)
{
    norm_grid grid = {outer * inner, inner == 1 ? LANE_CHANNELS : 1, 1};
    int64_t depth = CUDA_BLOCK / grid.width;
    grid.parts = (grid.count + depth * PART_POSITIONS - 1) / (depth * PART_POSITIONS);
    grid.parts = grid.parts < 1 ? 1 : grid.parts > PARTS_MAX ? PARTS_MAX : grid.parts;
    return grid;
}

/* Vectors in scratch memory, by channel: a factor, a shift and a slope, then the terms of each
 * part. */
DEVICE_INLINE double *vector_of(const struct cuda_batch_norm &call, int i)
{
    return static_cast<double *>(call.scratch) + i * call.channels;
}

DEVICE_INLINE norm_terms *part_of(const struct cuda_batch_norm &call, int64_t part)
{
    return reinterpret_cast<norm_terms *>(vector_of(call, 3)) + part * call.channels;
}

DEVICE_INLINE int64_t element_at(const struct cuda_batch_norm &call, int64_t channel,
                                 int64_t position)
{
    int64_t o = position / call.inner;
    return (o * call.channels + channel) * call.inner + position % call.inner;
}

template <bool backward, typename T>
DEVICE_INLINE norm_terms terms_of(const struct cuda_batch_norm &call, int64_t at, wide<T> centre)
{
    wide<T> x = widen(static_cast<const T *>(call.x)[at]);
    if constexpr (backward) {
        double g = widen(static_cast<const T *>(call.g)[at]);
        return {g, g * static_cast<double>(x - centre)};
    } else {
        double d = static_cast<double>(x) - static_cast<double>(centre);
        return {d, d * d};
    }
}

/* The value that the first kernel subtracts from x. */
template <bool backward, typename T>
DEVICE_INLINE wide<T> centre_of(const struct cuda_batch_norm &call, int64_t channel)
{
    const T *from = static_cast<const T *>(backward ? call.mean : call.x);
    return widen(from[backward ? channel : channel * call.inner]);
}

template <bool backward, typename T>
static __global__ void add_terms(const struct cuda_batch_norm call, const norm_grid grid)
{
    SHARED(double, a, CUDA_BLOCK);
    SHARED(double, b, CUDA_BLOCK);
    int lane = static_cast<int>(threadIdx.x) % grid.width, depth = CUDA_BLOCK / grid.width;
    int64_t channel = static_cast<int64_t>(blockIdx.x) * grid.width + lane;
    int64_t begin = grid.count * blockIdx.y / gridDim.y;
    int64_t end = grid.count * (blockIdx.y + 1) / gridDim.y;
    norm_terms sum = {0, 0};
    if (channel < call.channels && begin < end) {
        wide<T> centre = centre_of<backward, T>(call, channel);
        for (int64_t i = begin + threadIdx.x / grid.width; i < end; i += depth) {
            norm_terms terms = terms_of<backward, T>(call, element_at(call, channel, i), centre);
            sum.a += terms.a;
            sum.b += terms.b;
        }
    }
    a[threadIdx.x] = sum.a;
    b[threadIdx.x] = sum.b;
    for (unsigned half = CUDA_BLOCK / 2; half >= static_cast<unsigned>(grid.width); half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            a[threadIdx.x] += a[threadIdx.x + half];
            b[threadIdx.x] += b[threadIdx.x + half];
        }
    }
    if (static_cast<int>(threadIdx.x) < grid.width && channel < call.channels)
        part_of(call, blockIdx.y)[channel] = {a[threadIdx.x], b[threadIdx.x]};
}

/* y = (x - shift) factor + slope, with the offset as slope. */
template <typename T>
DEVICE_INLINE void finish_forward(const struct cuda_batch_norm &call, int64_t channel,
                                  const norm_terms &sum, double n)
{
    double mean, variance, unbiased = 1;
    if (call.training) {
        double off = sum.a / n; /* NaN without positions */
        mean = n > 0 ? static_cast<double>(centre_of<false, T>(call, channel)) + off : off;
        variance = (sum.b - sum.a * off) / n;
        variance = variance < 0 ? 0 : variance; /* by rounding */
        unbiased = n > 1 ? n / (n - 1) : 1;
    } else {
        mean = widen(static_cast<const T *>(call.mean)[channel]);
        variance = widen(static_cast<const T *>(call.variance)[channel]);
    }
    double scale = widen(static_cast<const T *>(call.scale)[channel]);
    vector_of(call, 0)[channel] = scale * (1 / sqrt(variance + call.epsilon));
    vector_of(call, 1)[channel] = mean;
    vector_of(call, 2)[channel] = widen(static_cast<const T *>(call.offset)[channel]);
    T rounded = narrow<T>(static_cast<wide<T>>(mean));
    static_cast<T *>(call.out[1])[channel] = static_cast<T *>(call.out[3])[channel] = rounded;
    static_cast<T *>(call.out[2])[channel] = narrow<T>(static_cast<wide<T>>(variance * unbiased));
    static_cast<T *>(call.out[4])[channel] = narrow<T>(static_cast<wide<T>>(variance));
}

/* dx = factor (g - shift - (x - mean) slope) */
template <typename T>
DEVICE_INLINE void finish_backward(const struct cuda_batch_norm &call, int64_t channel,
                                   const norm_terms &sum, double n)
{
    double variance = widen(static_cast<const T *>(call.variance)[channel]);
    double scale = widen(static_cast<const T *>(call.scale)[channel]);
    double r = 1 / sqrt(variance + call.epsilon);
    vector_of(call, 0)[channel] = scale * r;
    vector_of(call, 1)[channel] = call.training ? sum.a / n : 0;
    vector_of(call, 2)[channel] = call.training ? sum.b / n * r * r : 0;
    static_cast<T *>(call.out[1])[channel] = narrow<T>(static_cast<wide<T>>(n > 0 ? sum.b * r : 0));
    static_cast<T *>(call.out[2])[channel] = narrow<T>(static_cast<wide<T>>(sum.a));
}

template <bool backward, typename T>
static __global__ void finish(const struct cuda_batch_norm call, const norm_grid grid)
{
    for (int64_t channel = thread_index(); channel < call.channels; channel += thread_count()) {
        norm_terms sum = {0, 0};
        for (int64_t part = 0; part < grid.parts; part++) {
            sum.a += part_of(call, part)[channel].a;
            sum.b += part_of(call, part)[channel].b;
        }
        if constexpr (backward)
            finish_backward<T>(call, channel, sum, static_cast<double>(grid.count));
        else
            finish_forward<T>(call, channel, sum, static_cast<double>(grid.count));
    }
}

template <bool backward, typename T>
static __global__ void apply_norm(const struct cuda_batch_norm call)
{
    typedef wide<T> W;
    const T *x = static_cast<const T *>(call.x), *g = static_cast<const T *>(call.g);
    T *out = static_cast<T *>(call.out[0]);
    int64_t n = call.outer * call.channels * call.inner;
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        int64_t channel = i / call.inner % call.channels;
        W factor = static_cast<W>(vector_of(call, 0)[channel]);
        W shift = static_cast<W>(vector_of(call, 1)[channel]);
        W slope = static_cast<W>(vector_of(call, 2)[channel]);
        if constexpr (backward) {
            W centred = widen(x[i]) - widen(static_cast<const T *>(call.mean)[channel]);
            out[i] = narrow<T>(factor * (widen(g[i]) - shift - centred * slope));
        } else {
            out[i] = narrow<T>((widen(x[i]) - shift) * factor + slope);
        }
    }
}

/* Given statistics need no sums. */
template <bool backward, typename T>
static int launch(const struct cuda_batch_norm *call, struct CUstream_st *stream)
{
    norm_grid grid = grid_of(call->outer, call->inner);
    int result = 0;
    if (backward || call->training) {
        dim3 blocks(static_cast<unsigned>((call->channels + grid.width - 1) / grid.width),
                    static_cast<unsigned>(grid.parts));
        result = CUDA_LAUNCH((add_terms<backward, T>), blocks, CUDA_BLOCK, 0, stream, *call, grid);
    } else {
        grid.parts = 0;
    }
    if (!result)
        result = CUDA_LAUNCH_EACH((finish<backward, T>), call->channels, stream, *call, grid);
    int64_t n = call->outer * call->channels * call->inner;
    if (result || !n)
        return result;
    return CUDA_LAUNCH_EACH((apply_norm<backward, T>), n, stream, *call);
}

extern "C" size_t cuda_batch_norm_scratch(int64_t outer, int64_t channels, int64_t inner)
{
    norm_grid grid = grid_of(outer, inner);
    return static_cast<size_t>(channels) *
           (3 * sizeof(double) + static_cast<size_t>(grid.parts) * sizeof(norm_terms));
}

extern "C" int cuda_batch_norm(const struct cuda_batch_norm *call, struct CUstream_st *stream)
{
    return launch_by_float(call->type, [&](auto like) {
        typedef typename decltype(like)::type T;
        return call->g ? launch<true, T>(call, stream) : launch<false, T>(call, stream);
    });
}

/* ---- around cuDNN's ---- */

template <typename T> DEVICE_INLINE T *dnn_vector_of(const struct cuda_batch_norm &call, int i)
{
    return static_cast<T *>(call.scratch) + i * call.channels;
}

template <typename T> static __global__ void before_dnn(const struct cuda_batch_norm call)
{
    for (int64_t i = thread_index(); i < call.channels; i += thread_count()) {
        double r = 0;
        if (call.g)
            r = 1 / sqrt(widen(static_cast<const T *>(call.variance)[i]) + call.epsilon);
        dnn_vector_of<T>(call, 0)[i] = narrow<T>(static_cast<wide<T>>(r));
        if (!call.g)
            dnn_vector_of<T>(call, 1)[i] = narrow<T>(0);
    }
}

template <typename T> static __global__ void after_dnn(const struct cuda_batch_norm call)
{
    double n = static_cast<double>(call.outer * call.inner), biased = (n - 1) / n;
    const T *mean = static_cast<const T *>(call.mean);
    const T *variance = static_cast<const T *>(call.variance);
    if (call.training)
        mean = dnn_vector_of<T>(call, 0), variance = dnn_vector_of<T>(call, 1);
    for (int64_t i = thread_index(); i < call.channels; i += thread_count()) {
        double given = widen(variance[i]);
        static_cast<T *>(call.out[1])[i] = static_cast<T *>(call.out[3])[i] = mean[i];
        static_cast<T *>(call.out[2])[i] = variance[i];
        static_cast<T *>(call.out[4])[i] =
            narrow<T>(static_cast<wide<T>>(call.training ? given * biased : given));
    }
}

extern "C" int cuda_batch_norm_before(const struct cuda_batch_norm *call,
                                      struct CUstream_st *stream)
{
    if (!call->training)
        return 0;
    return launch_by_float(call->type, [&](auto like) {
        typedef typename decltype(like)::type T;
        return CUDA_LAUNCH_EACH(before_dnn<T>, call->channels, stream, *call);
    });
}

extern "C" int cuda_batch_norm_after(const struct cuda_batch_norm *call, struct CUstream_st *stream)
{
    if (call->g)
        return 0;
    return launch_by_float(call->type, [&](auto like) {
        typedef typename decltype(like)::type T;
        return CUDA_LAUNCH_EACH(after_dnn<T>, call->channels, stream, *call);
    });
}
