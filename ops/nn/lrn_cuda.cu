/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread per element adds the channels within the radius, in order. The gradient takes two
 * kernels: each element's term for its neighbours, and the sum of these terms.
 */
#include "ops/nn/launchers_cuda.h"

#include <cmath>

#include "ops/device/types_cuda.cuh"

#define VMATH_FUNCTION static __device__ __forceinline__
#include "ops/math/vmath.h"

DEVICE_INLINE float power(float base, float exponent)
{
    return vmath_exp(exponent * vmath_log(base));
}

DEVICE_INLINE double power(double base, double exponent)
{
    return pow(base, exponent);
}

namespace
{
struct neighbours {
    int64_t from, to;
};
} // namespace

DEVICE_INLINE neighbours neighbours_of(const struct cuda_lrn &call, int64_t i)
{
    int64_t c = i % call.channels, first = i - c;
    int64_t end = c + call.radius + 1 < call.channels ? c + call.radius + 1 : call.channels;
    return {first + (c > call.radius ? c - call.radius : 0), first + end};
}

/* bias + alpha sum of x^2 */
template <typename T> DEVICE_INLINE wide<T> norm_of(const struct cuda_lrn &call, int64_t i)
{
    typedef wide<T> W;
    const T *x = static_cast<const T *>(call.x);
    neighbours all = neighbours_of(call, i);
    W sum = 0;
    for (int64_t k = all.from; k < all.to; k++)
        sum += widen(x[k]) * widen(x[k]);
    return static_cast<W>(call.bias) + static_cast<W>(call.alpha) * sum;
}

template <typename T> static __global__ void normalize(const struct cuda_lrn call)
{
    const T *x = static_cast<const T *>(call.x);
    T *out = static_cast<T *>(call.out);
    for (int64_t i = thread_index(); i < call.positions * call.channels; i += thread_count())
        out[i] =
            narrow<T>(widen(x[i]) * power(norm_of<T>(call, i), -static_cast<wide<T>>(call.beta)));
}

/* g y / n */
template <typename T> static __global__ void give(const struct cuda_lrn call)
{
    typedef wide<T> W;
    const T *y = static_cast<const T *>(call.y), *g = static_cast<const T *>(call.g);
    W *part = static_cast<W *>(call.scratch);
    for (int64_t i = thread_index(); i < call.positions * call.channels; i += thread_count())
        part[i] = widen(g[i]) * widen(y[i]) / norm_of<T>(call, i);
}

template <typename T> static __global__ void gather(const struct cuda_lrn call)
{
    typedef wide<T> W;
    const T *x = static_cast<const T *>(call.x), *g = static_cast<const T *>(call.g);
    const W *part = static_cast<const W *>(call.scratch);
    T *out = static_cast<T *>(call.out);
    W beta = static_cast<W>(call.beta), factor = 2 * static_cast<W>(call.alpha) * beta;
    for (int64_t i = thread_index(); i < call.positions * call.channels; i += thread_count()) {
        neighbours all = neighbours_of(call, i);
        W sum = 0, own = widen(g[i]) * power(norm_of<T>(call, i), -beta);
        for (int64_t k = all.from; k < all.to; k++)
            sum += part[k];
        out[i] = narrow<T>(own - factor * widen(x[i]) * sum);
    }
}

extern "C" size_t cuda_lrn_scratch(enum cuda_type type, int64_t elements)
{
    return static_cast<size_t>(elements) * (type == CUDA_FLOAT64 ? sizeof(double) : sizeof(float));
}

extern "C" int cuda_lrn(const struct cuda_lrn *call, struct CUstream_st *stream)
{
    unsigned blocks = cuda_blocks(call->positions * call->channels);
    return launch_by_float(call->type, [&](auto like) {
        typedef typename decltype(like)::type T;
        if (!call->g)
            return CUDA_LAUNCH(normalize<T>, blocks, CUDA_BLOCK, 0, stream, *call);
        else {
            int result = CUDA_LAUNCH(give<T>, blocks, CUDA_BLOCK, 0, stream, *call);
            return result ? result : CUDA_LAUNCH(gather<T>, blocks, CUDA_BLOCK, 0, stream, *call);
        }
    });
}
