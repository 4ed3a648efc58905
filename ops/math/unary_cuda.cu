/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise ops of one array: computed in a wide type, a pack of elements per thread and turn.
 */
#include <cstring>

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
    unsigned blocks = cuda_blocks(args.packs ? call->n / N : call->n);
    return CUDA_LAUNCH((unary<Op, T, R>), blocks, CUDA_BLOCK, 0, stream, args);
}

struct unary_row {
    const char *op;
    cuda_type type;
    cuda_unary_launcher *launch;
};

#define ROW(op, type, T, R) {#op, type, launch<op, T, R>},
#define FLOATS_ROWS(op)                                                                            \
    ROW(op, CUDA_FLOAT32, float, float)                                                            \
    ROW(op, CUDA_FLOAT64, double, double)                                                          \
    ROW(op, CUDA_FLOAT16, __half, __half) ROW(op, CUDA_BFLOAT16, __nv_bfloat16, __nv_bfloat16)
#define ANGLES_ROWS FLOATS_ROWS
#define SIGNED_ROWS(op)                                                                            \
    FLOATS_ROWS(op)                                                                                \
    ROW(op, CUDA_INT8, int8_t, int8_t)                                                             \
    ROW(op, CUDA_INT16, int16_t, int16_t)                                                          \
    ROW(op, CUDA_INT32, int32_t, int32_t) ROW(op, CUDA_INT64, int64_t, int64_t)
#define REALS_ROWS(op)                                                                             \
    SIGNED_ROWS(op)                                                                                \
    ROW(op, CUDA_UINT8, uint8_t, uint8_t)                                                          \
    ROW(op, CUDA_UINT16, uint16_t, uint16_t)                                                       \
    ROW(op, CUDA_UINT32, uint32_t, uint32_t) ROW(op, CUDA_UINT64, uint64_t, uint64_t)
#define ROWS(op, loop, types, ...) types##_ROWS(op)

/* clang-format off */
static const unary_row rows[] = {
    UNARY_OPS(ROWS)
    ACTIVATION_MASKS(ROWS)
    ACTIVATION_CURVES(ROWS)
    ROW(IsNan, CUDA_FLOAT32, float, bool)
    ROW(IsNan, CUDA_FLOAT64, double, bool)
    ROW(IsNan, CUDA_FLOAT16, __half, bool)
    ROW(IsNan, CUDA_BFLOAT16, __nv_bfloat16, bool)
    ROW(LogicalNot, CUDA_BOOL, bool, bool)
};
/* clang-format on */

extern "C" cuda_unary_launcher *cuda_unary(const char *op, enum cuda_type type)
{
    for (const unary_row &row : rows)
        if (row.type == type && !strcmp(row.op, op))
            return row.launch;
    return [](const struct cuda_unary *, struct CUstream_st *) { return CUDA_INVALID_VALUE; };
}
