/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise ops of one array: computed in a wide type, a pack of elements per thread and turn.
 */
#include "ops/math/element_rows_cuda.cuh"
#include "ops/math/launchers_cuda.h"
#include "ops/math/unary_ops_cuda.cuh"

namespace
{
struct IsNan {
    template <typename T> static __device__ __forceinline__ bool of(T x)
    {
        return x != x;
    }
};
struct LogicalNot {
    template <typename T> static __device__ __forceinline__ bool of(T x)
    {
        return !x;
    }
};
} // namespace

template <typename Op, typename R, typename T> DEVICE_INLINE R apply(T x)
{
    if constexpr (std::is_same<R, bool>::value)
        return Op::of(widen(x));
    else
        return narrow<R>(Op::of(widen(x)));
}

template <typename Op, typename T, typename R>
static __global__ void unary(const struct cuda_unary call, bool packs)
{
    each_pack<16 / sizeof(T)>(call.n, packs, [&](auto width, int64_t i) {
        constexpr int N = decltype(width)::value;
        pack<T, N> x = load_pack<N>(static_cast<const T *>(call.x) + i);
        pack<R, N> result;
        for (int k = 0; k < N; k++)
            result.at[k] = apply<Op, R>(x.at[k]);
        store_pack(static_cast<R *>(call.y) + i, result);
    });
}

template <typename Op, typename T, typename R>
static int launch(const struct cuda_unary *call, struct CUstream_st *stream)
{
    constexpr int N = 16 / sizeof(T);
    bool packs = is_aligned(call->x, 16) && is_aligned(call->y, N * sizeof(R));
    return CUDA_LAUNCH_EACH((unary<Op, T, R>), pack_count(call->n, packs, N), stream, *call, packs);
}

#define ROWS(op, loop, types, ...) types##_ROWS(op, void)

/* clang-format off */
static const element_row<cuda_unary_launcher> rows[] = {
    OPS_OF_ONE(ROWS)
    FLOATS_ROWS(IsNan, bool)
    ROW(LogicalNot, CUDA_BOOL, bool, bool)
};
/* clang-format on */

extern "C" cuda_unary_launcher *cuda_unary(const char *op, enum cuda_type type)
{
    cuda_unary_launcher *launch = find_launcher(rows, op, type);
    return launch ? launch : [](const struct cuda_unary *, struct CUstream_st *) {
        return CUDA_INVALID_VALUE;
    };
}
