/* SPDX-License-Identifier: Apache-2.0
 *
 * Range: a thread per element.
 */
#include "ops/array/launchers_cuda.h"

#include "ops/device/types_cuda.cuh"

template <typename T> static __global__ void range(T start, T delta, T *out, int64_t n)
{
    typedef twin<wide<T>> W;
    W from = static_cast<W>(widen(start)), step = static_cast<W>(widen(delta));
    for (int64_t i = thread_index(); i < n; i += thread_count())
        out[i] = narrow<T>(static_cast<wide<T>>(from + static_cast<W>(i) * step));
}

extern "C" int cuda_range(const struct cuda_range *call, struct CUstream_st *stream)
{
    return launch_by_number(call->type, [&](auto e) {
        typedef typename decltype(e)::type T;
        return CUDA_LAUNCH_EACH(range<T>, call->n, stream, *static_cast<const T *>(call->start),
                                *static_cast<const T *>(call->delta), static_cast<T *>(call->out),
                                call->n);
    });
}
