/* SPDX-License-Identifier: Apache-2.0
 *
 * Each thread reads its elements of all inputs before it writes. Integers wrap around.
 */
#include "ops/math/launchers_cuda.h"

#include "ops/device/types_cuda.cuh"

template <typename T> static __global__ void addn(const struct cuda_addn call, bool packs)
{
    typedef twin<wide<T>> U;
    each_pack<16 / sizeof(T)>(call.n, packs, [&](auto width, int64_t i) {
        constexpr int N = decltype(width)::value;
        pack<T, N> x = load_pack<N>(static_cast<const T *>(call.in[0]) + i);
        U sums[N];
        for (int k = 0; k < N; k++)
            sums[k] = static_cast<U>(widen(x.at[k]));
        for (int from = 1; from < call.n_in; from++) {
            x = load_pack<N>(static_cast<const T *>(call.in[from]) + i);
            for (int k = 0; k < N; k++)
                sums[k] += static_cast<U>(widen(x.at[k]));
        }
        for (int k = 0; k < N; k++)
            x.at[k] = narrow<T>(static_cast<wide<T>>(sums[k]));
        store_pack(static_cast<T *>(call.out) + i, x);
    });
}

template <typename T> static int launch(const struct cuda_addn *call, struct CUstream_st *stream)
{
    bool packs = is_aligned(call->out, 16);
    for (int i = 0; i < call->n_in; i++)
        packs = packs && is_aligned(call->in[i], 16);
    return CUDA_LAUNCH_EACH(addn<T>, pack_count(call->n, packs, 16 / sizeof(T)), stream, *call,
                            packs);
}

extern "C" int cuda_addn(const struct cuda_addn *call, struct CUstream_st *stream)
{
    return launch_by_number(
        call->type, [&](auto e) { return launch<typename decltype(e)::type>(call, stream); });
}
