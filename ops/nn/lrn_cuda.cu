/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread per element adds the channels within the radius, in order. For the gradient a block's
 * threads put terms of elements and their neighbours into shared memory, each computed once, and
 * add them from there: TERMS at a time, which is once unless the radius is larger than half a
 * block.
 */
#include "ops/nn/launchers_cuda.h"

#include <cmath>

#include "ops/device/types_cuda.cuh"

#define TERMS (2 * CUDA_BLOCK)

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

template <typename T> static __global__ void gather(const struct cuda_lrn call)
{
    typedef wide<T> W;
    SHARED(W, terms, TERMS); /* g y / n */
    const T *x = static_cast<const T *>(call.x), *y = static_cast<const T *>(call.y);
    const T *g = static_cast<const T *>(call.g);
    T *out = static_cast<T *>(call.out);
    W beta = static_cast<W>(call.beta), factor = 2 * static_cast<W>(call.alpha) * beta;
    int64_t n = call.positions * call.channels, radius = call.radius;
    for (int64_t first = static_cast<int64_t>(blockIdx.x) * CUDA_BLOCK; first < n;
         first += thread_count()) {
        int64_t i = first + threadIdx.x, last = first + CUDA_BLOCK + radius;
        neighbours all = i < n ? neighbours_of(call, i) : neighbours{0, 0};
        W sum = 0;
        last = last < n ? last : n;
        for (int64_t at = first > radius ? first - radius : 0; at < last; at += TERMS) {
            int64_t end = at + TERMS < last ? at + TERMS : last;
            __syncthreads();
            for (int64_t k = at + threadIdx.x; k < end; k += CUDA_BLOCK)
                terms[k - at] = widen(g[k]) * widen(y[k]) / norm_of<T>(call, k);
            __syncthreads();
            for (int64_t k = all.from > at ? all.from : at; k < all.to && k < end; k++)
                sum += terms[k - at];
        }
        if (i < n)
            out[i] = narrow<T>(widen(g[i]) * power(norm_of<T>(call, i), -beta) -
                               factor * widen(x[i]) * sum);
    }
}

extern "C" int cuda_lrn(const struct cuda_lrn *call, struct CUstream_st *stream)
{
    int64_t n = call->positions * call->channels;
    return launch_by_float(call->type, [&](auto like) {
        typedef typename decltype(like)::type T;
        return call->g ? CUDA_LAUNCH_EACH(gather<T>, n, stream, *call)
                       : CUDA_LAUNCH_EACH(normalize<T>, n, stream, *call);
    });
}
