/* SPDX-License-Identifier: Apache-2.0
 *
 * CheckNumerics: a thread per element or pack, and the remaining elements.
 */
#include "ops/array/launchers_cuda.h"

#include "ops/device/types_cuda.cuh"

/* x - x is 0 if x is finite, else NaN. */
template <typename W> DEVICE_INLINE void check(const cuda_fault &fault, W x, int64_t at)
{
    if (x - x != 0)
        leave_fault(fault, FAULT_NOT_FINITE, at, x != x ? 0 : x > 0 ? 1 : -1);
}

template <typename T, int N>
static __global__ void check_numerics(const struct cuda_check_numerics call)
{
    const T *x = static_cast<const T *>(call.x);
    int64_t packs = call.n / N, rest = call.n - packs * N;
    for (int64_t i = thread_index(); i < packs; i += thread_count()) {
        pack<T, N> values = load_pack<N>(x + i * N);
        for (int k = 0; k < N; k++)
            check(call.fault, widen(values.at[k]), i * N + k);
    }
    if (thread_index() < rest)
        check(call.fault, widen(x[packs * N + thread_index()]), packs * N + thread_index());
}

extern "C" int cuda_check_numerics(const struct cuda_check_numerics *call,
                                   struct CUstream_st *stream)
{
    return launch_by_float(call->type, [&](auto e) {
        typedef typename decltype(e)::type T;
        constexpr int N = 16 / sizeof(T);
        if (is_aligned(call->x, 16))
            return CUDA_LAUNCH_EACH((check_numerics<T, N>), pack_count(call->n, true, N), stream,
                                    *call);
        else
            return CUDA_LAUNCH_EACH((check_numerics<T, 1>), call->n, stream, *call);
    });
}
