/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing whole variables: a pack of elements per thread and iteration. Integers wrap around.
 */
#include "ops/state/launchers_cuda.h"

#include "ops/device/types_cuda.cuh"

namespace
{
template <typename T> struct assign_args {
    int64_t n;
    const T *from;
    T *to;
    bool packs;
    const struct fault *fault;
};

struct replaced {
    template <typename T> static __device__ __forceinline__ T of(T, T value)
    {
        return value;
    }
};

struct increased {
    template <typename T> static __device__ __forceinline__ T of(T before, T value)
    {
        typedef twin<wide<T>> U;
        return narrow<T>(static_cast<wide<T>>(static_cast<U>(widen(before)) + U(widen(value))));
    }
};

struct decreased {
    template <typename T> static __device__ __forceinline__ T of(T before, T value)
    {
        typedef twin<wide<T>> U;
        return narrow<T>(static_cast<wide<T>>(static_cast<U>(widen(before)) - U(widen(value))));
    }
};
} // namespace

template <typename Op, typename T> static __global__ void assign(const assign_args<T> args)
{
    constexpr int N = 16 / sizeof(T);
    if (has_failed(args.fault))
        return;
    int64_t done = args.packs ? args.n / N * N : 0;
    for (int64_t i = thread_index() * N; i < done; i += thread_count() * N) {
        pack<T, N> before = load_pack<N>(args.to + i), value = load_pack<N>(args.from + i);
        for (int k = 0; k < N; k++)
            value.at[k] = Op::of(before.at[k], value.at[k]);
        store_pack(args.to + i, value);
    }
    for (int64_t i = done + thread_index(); i < args.n; i += thread_count())
        args.to[i] = Op::of(args.to[i], args.from[i]);
}

template <typename Op, typename T>
static int launch(const struct cuda_assign *call, struct CUstream_st *stream)
{
    constexpr int N = 16 / sizeof(T);
    assign_args<T> args = {call->n, static_cast<const T *>(call->from), static_cast<T *>(call->to),
                           is_aligned(call->from, 16) && is_aligned(call->to, 16), call->fault};
    if (!call->n)
        return 0;
    return CUDA_LAUNCH_EACH((assign<Op, T>), args.packs ? call->n / N : call->n, stream, args);
}

extern "C" int cuda_assign(const struct cuda_assign *call, struct CUstream_st *stream)
{
    switch (call->op) {
    case CUDA_ASSIGN:
        return launch_by_any(call->type, [&](auto like) {
            return launch_by_size(sizeof(typename decltype(like)::type), [&](auto e) {
                return launch<replaced, typename decltype(e)::type>(call, stream);
            });
        });
    case CUDA_ASSIGN_ADD:
        return launch_by_number(call->type, [&](auto e) {
            return launch<increased, typename decltype(e)::type>(call, stream);
        });
    case CUDA_ASSIGN_SUB:
        return launch_by_number(call->type, [&](auto e) {
            return launch<decreased, typename decltype(e)::type>(call, stream);
        });
    }
    return CUDA_INVALID_VALUE;
}
