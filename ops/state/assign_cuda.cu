/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing whole variables: a pack of elements per thread and iteration. Integers wrap around.
 */
#include "ops/state/launchers_cuda.h"

#include "ops/device/types_cuda.cuh"

namespace
{
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

template <typename Op, typename T>
static __global__ void assign(const struct cuda_assign call, bool packs)
{
    T *to = static_cast<T *>(call.to);
    if (has_failed(call.fault))
        return;
    each_pack<16 / sizeof(T)>(call.n, packs, [&](auto width, int64_t i) {
        constexpr int N = decltype(width)::value;
        pack<T, N> before = load_pack<N>(to + i);
        pack<T, N> value = load_pack<N>(static_cast<const T *>(call.from) + i);
        for (int k = 0; k < N; k++)
            value.at[k] = Op::of(before.at[k], value.at[k]);
        store_pack(to + i, value);
    });
}

template <typename Op, typename T>
static int launch(const struct cuda_assign *call, struct CUstream_st *stream)
{
    bool packs = is_aligned(call->from, 16) && is_aligned(call->to, 16);
    return CUDA_LAUNCH_EACH((assign<Op, T>), pack_count(call->n, packs, 16 / sizeof(T)), stream,
                            *call, packs);
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
