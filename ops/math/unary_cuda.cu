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

template <typename T> struct unary_args {
    int64_t n;
    const T *x;
    void *y;
    bool packs;
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
static __global__ void unary(const unary_args<T> args)
{
    constexpr int N = 16 / sizeof(T);
    R *y = static_cast<R *>(args.y);
    int64_t done = args.packs ? args.n / N * N : 0;
    for (int64_t i = thread_index() * N; i < done; i += thread_count() * N) {
        pack<T, N> x = load_pack<N>(args.x + i);
        pack<R, N> result;
        for (int k = 0; k < N; k++)
            result.at[k] = apply<Op, R>(x.at[k]);
        store_pack(y + i, result);
    }
    for (int64_t i = done + thread_index(); i < args.n; i += thread_count())
        y[i] = apply<Op, R>(args.x[i]);
}

template <typename Op, typename T, typename R>
static int launch(const struct cuda_unary *call, struct CUstream_st *stream)
{
    constexpr int N = 16 / sizeof(T);
    unary_args<T> args = {call->n, static_cast<const T *>(call->x), call->y,
                          is_aligned(call->x, 16) && is_aligned(call->y, N * sizeof(R))};
    if (!call->n)
        return 0;
    return CUDA_LAUNCH_EACH((unary<Op, T, R>), args.packs ? call->n / N : call->n, stream, args);
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
