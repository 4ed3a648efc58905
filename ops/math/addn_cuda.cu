/* SPDX-License-Identifier: Apache-2.0
 *
 * Each thread reads its elements of all inputs before it writes. Integers wrap around.
 */
#include "ops/math/launchers_cuda.h"

#include "ops/device/types_cuda.cuh"

namespace
{
template <typename T> struct addn_args {
    int64_t n;
    T *out;
    bool packs;
    int n_in;
    const T *in[CUDA_ADDN_INPUTS];
};
} // namespace

/* Adds elements i to i + N - 1. */
template <typename T, int N> DEVICE_INLINE void add(const addn_args<T> &args, int64_t i)
{
    typedef twin<wide<T>> U;
    pack<T, N> x = load_pack<N>(args.in[0] + i);
    U sums[N];
    for (int k = 0; k < N; k++)
        sums[k] = static_cast<U>(widen(x.at[k]));
    for (int from = 1; from < args.n_in; from++) {
        x = load_pack<N>(args.in[from] + i);
        for (int k = 0; k < N; k++)
            sums[k] += static_cast<U>(widen(x.at[k]));
    }
    for (int k = 0; k < N; k++)
        x.at[k] = narrow<T>(static_cast<wide<T>>(sums[k]));
    store_pack(args.out + i, x);
}

template <typename T> static __global__ void addn(const addn_args<T> args)
{
    constexpr int N = 16 / sizeof(T);
    int64_t done = args.packs ? args.n / N * N : 0;
    for (int64_t i = thread_index() * N; i < done; i += thread_count() * N)
        add<T, N>(args, i);
    for (int64_t i = done + thread_index(); i < args.n; i += thread_count())
        add<T, 1>(args, i);
}

template <typename T> static int launch(const struct cuda_addn *call, struct CUstream_st *stream)
{
    constexpr int N = 16 / sizeof(T);
    addn_args<T> args = {
        call->n, static_cast<T *>(call->out), is_aligned(call->out, 16), call->n_in, {}};
    for (int i = 0; i < call->n_in; i++) {
        args.in[i] = static_cast<const T *>(call->in[i]);
        args.packs = args.packs && is_aligned(call->in[i], 16);
    }
    return CUDA_LAUNCH_EACH(addn<T>, args.packs ? call->n / N : call->n, stream, args);
}

extern "C" int cuda_addn(const struct cuda_addn *call, struct CUstream_st *stream)
{
    if (!call->n)
        return 0;
    return launch_by_number(
        call->type, [&](auto e) { return launch<typename decltype(e)::type>(call, stream); });
}
