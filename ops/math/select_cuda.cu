/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/launchers_cuda.h"

#include "ops/math/broadcast_cuda.cuh"

namespace
{
template <typename T> struct select_args {
    walk_plan plan;
    const bool *condition;
    const T *t, *e;
    T *out;
};
} // namespace

template <typename T> static __global__ void select(const select_args<T> args)
{
    constexpr int N = 16 / sizeof(T);
    int64_t n = args.plan.count, done = args.plan.packs ? n / N * N : 0;
    for (int64_t i = thread_index() * N; i < done; i += thread_count() * N) {
        pack<bool, N> condition = load_operand<N>(args.condition, args.plan.advances[0], i);
        pack<T, N> t = load_operand<N>(args.t, args.plan.advances[1], i);
        pack<T, N> e = load_operand<N>(args.e, args.plan.advances[2], i);
        for (int k = 0; k < N; k++)
            t.at[k] = condition.at[k] ? t.at[k] : e.at[k];
        store_pack(args.out + i, t);
    }
    for (int64_t i = done + thread_index(); i < n; i += thread_count()) {
        int64_t at[CUDA_BROADCAST_INPUTS];
        place_of(args.plan, i, at);
        args.out[i] = args.condition[at[0]] ? args.t[at[1]] : args.e[at[2]];
    }
}

template <typename T>
static int launch_select(const struct cuda_select *call, struct CUstream_st *stream)
{
    constexpr int N = 16 / sizeof(T);
    select_args<T> args = {plan_walk(call->walk), static_cast<const bool *>(call->condition),
                           static_cast<const T *>(call->t), static_cast<const T *>(call->e),
                           static_cast<T *>(call->out)};
    walk_plan &plan = args.plan;
    if (!plan.count)
        return 0;
    plan.packs = plan.packs && is_aligned(call->out, 16) &&
                 (!plan.advances[0] || is_aligned(call->condition, N)) &&
                 (!plan.advances[1] || is_aligned(call->t, 16)) &&
                 (!plan.advances[2] || is_aligned(call->e, 16));
    return CUDA_LAUNCH_EACH(select<T>, plan.packs ? plan.count / N : plan.count, stream, args);
}

template <typename T> static __global__ void fill(const struct cuda_fill call, bool packs)
{
    constexpr int N = 16 / sizeof(T);
    const T bits = static_cast<T>(call.bits); /* little-endian: low bits are the first bytes */
    T *out = static_cast<T *>(call.out);
    int64_t n = call.n, done = packs ? n / N * N : 0;
    pack<T, N> all =
        load_operand<N>(call.value ? static_cast<const T *>(call.value) : &bits, false, 0);
    for (int64_t i = thread_index() * N; i < done; i += thread_count() * N)
        store_pack(out + i, all);
    for (int64_t i = done + thread_index(); i < n; i += thread_count())
        out[i] = all.at[0];
}

template <typename T>
static int launch_fill(const struct cuda_fill *call, struct CUstream_st *stream)
{
    constexpr int N = 16 / sizeof(T);
    bool packs = is_aligned(call->out, 16);
    if (!call->n)
        return 0;
    return CUDA_LAUNCH_EACH(fill<T>, packs ? call->n / N : call->n, stream, *call, packs);
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
