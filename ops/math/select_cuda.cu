/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/launchers_cuda.h"

#include "ops/math/broadcast_cuda.cuh"

template <typename T> static __global__ void select(const struct cuda_select call, bool packs)
{
    const broadcast &plan = call.walk;
    each_pack<16 / sizeof(T)>(plan.count, packs, [&](auto width, int64_t i) {
        constexpr int N = decltype(width)::value;
        int64_t at[BROADCAST_INPUTS_MAX];
        place_of<N>(plan, i, at);
        pack<bool, N> condition =
            load_operand<N>(static_cast<const bool *>(call.condition) + at[0], plan.strides[0][0]);
        pack<T, N> t = load_operand<N>(static_cast<const T *>(call.t) + at[1], plan.strides[1][0]);
        pack<T, N> e = load_operand<N>(static_cast<const T *>(call.e) + at[2], plan.strides[2][0]);
        for (int k = 0; k < N; k++)
            t.at[k] = condition.at[k] ? t.at[k] : e.at[k];
        store_pack(static_cast<T *>(call.out) + i, t);
    });
}

template <typename T>
static int launch_select(const struct cuda_select *call, struct CUstream_st *stream)
{
    constexpr int N = 16 / sizeof(T);
    const broadcast &plan = call->walk;
    bool packs = is_packed<bool>(plan, 0, call->condition, N) &&
                 is_packed<T>(plan, 1, call->t, N) && is_packed<T>(plan, 2, call->e, N) &&
                 is_aligned(call->out, 16);
    return CUDA_LAUNCH_EACH(select<T>, pack_count(plan.count, packs, N), stream, *call, packs);
}

template <typename T> static __global__ void fill(const struct cuda_fill call, bool packs)
{
    const T bits = static_cast<T>(call.bits); /* little-endian: low bits are the first bytes */
    const T value = call.value ? *static_cast<const T *>(call.value) : bits;
    each_pack<16 / sizeof(T)>(call.n, packs, [&](auto width, int64_t i) {
        store_pack(static_cast<T *>(call.out) + i,
                   load_operand<decltype(width)::value>(&value, false));
    });
}

template <typename T>
static int launch_fill(const struct cuda_fill *call, struct CUstream_st *stream)
{
    constexpr int N = 16 / sizeof(T);
    bool packs = is_aligned(call->out, 16);
    return CUDA_LAUNCH_EACH(fill<T>, pack_count(call->n, packs, N), stream, *call, packs);
}

extern "C" int cuda_select(const struct cuda_select *call, struct CUstream_st *stream)
{
    return launch_by_size(call->element_bytes, [&](auto e) {
        return launch_select<typename decltype(e)::type>(call, stream);
    });
}

extern "C" int cuda_fill(const struct cuda_fill *call, struct CUstream_st *stream)
{
    return launch_by_size(call->element_bytes, [&](auto e) {
        return launch_fill<typename decltype(e)::type>(call, stream);
    });
}
