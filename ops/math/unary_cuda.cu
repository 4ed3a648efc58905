/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise ops of one array: in a type's wide type, a pack of elements per thread and turn. The
 * functions of float32 are those that the CPU has, and have the same bits.
 */
#include "ops/math/unary_cuda.h"

#include <cmath>
#include <cstring>

#include "ops/device/types_cuda.cuh"

#define VMATH_FUNCTION static __device__ __forceinline__
#include "ops/math/vmath.h"
#include "ops/nn/activation_math.h"

/* X(op, element): T is the type of x, U its unsigned twin. */
#define FLOAT_OPS(X)                                                                               \
    X(Sqrt, sqrt(x))                                                                               \
    X(Rsqrt, 1 / sqrt(x))                                                                          \
    X(Reciprocal, 1 / x)                                                                           \
    X(Floor, floor(x))                                                                             \
    X(Ceil, ceil(x))                                                                               \
    X(Exp, exponential(x))                                                                         \
    X(Log, logarithm(x))                                                                           \
    X(Log1p, logarithm_of_next(x))                                                                 \
    X(Tanh, hyperbolic_tangent(x))                                                                 \
    X(Sigmoid, logistic(x))                                                                        \
    X(Erf, error_function(x))                                                                      \
    X(Sin, sine(x))                                                                                \
    X(Cos, cosine(x))                                                                              \
    X(Elu, x < 0 ? exponential_less_one(x) : x)                                                    \
    X(Softplus, softplus(x))
#define SIGNED_OPS(X)                                                                              \
    X(Neg, -x, static_cast<T>(0 - static_cast<U>(x)))                                              \
    X(Abs, fabs(x), x < 0 ? static_cast<T>(0 - static_cast<U>(x)) : x)                             \
    X(Sign, x > 0 ? 1 : x < 0 ? -1 : x, (x > 0) - (x < 0)) /* NaN and 0: their own */              \
    X(Round, rint(x), x)
#define REAL_OPS(X)                                                                                \
    X(Square, x *x, static_cast<T>(static_cast<U>(x) * static_cast<U>(x)))                         \
    X(Relu, x<0 ? 0 : x, x> 0 ? x : 0) /* NaN: its own */                                          \
    X(Relu6, x<0 ? 0 : x> 6 ? 6 : x, x > 6 ? 6 : x > 0 ? x : 0)

#define BY_TYPE(name, single, twofold)                                                             \
    DEVICE_INLINE float name(float x)                                                              \
    {                                                                                              \
        return single;                                                                             \
    }                                                                                              \
    DEVICE_INLINE double name(double x)                                                            \
    {                                                                                              \
        return twofold;                                                                            \
    }
BY_TYPE(exponential, vmath_exp(x), exp(x))
BY_TYPE(logarithm, vmath_log(x), log(x))
BY_TYPE(logarithm_of_next, vmath_log1p(x), log1p(x))
BY_TYPE(hyperbolic_tangent, vmath_tanh(x), tanh(x))
BY_TYPE(error_function, vmath_erf(x), erf(x))
BY_TYPE(sine, fabsf(x) < VMATH_ANGLE_MAX ? vmath_sin_quadrant(x, 0) : sinf(x), sin(x))
BY_TYPE(cosine, fabsf(x) < VMATH_ANGLE_MAX ? vmath_sin_quadrant(x, 1) : cosf(x), cos(x))

DEVICE_INLINE double logistic_of(double x)
{
    double e = exp(-fabs(x));
    return (x >= 0 ? 1 : e) / (1 + e);
}
BY_TYPE(exponential_less_one, activation_expm1(x), expm1(x))
BY_TYPE(softplus, activation_softplus(x), activation_softplus64(x))
BY_TYPE(logistic, vmath_sigmoid(x), logistic_of(x))

#define FLOAT_OP(name, element)                                                                    \
    struct name {                                                                                  \
        template <typename T> static __device__ __forceinline__ T of(T x)                          \
        {                                                                                          \
            return element;                                                                        \
        }                                                                                          \
    };
#define REAL_OP(name, floats, integers)                                                            \
    struct name {                                                                                  \
        template <typename T> static __device__ __forceinline__ T of(T x)                          \
        {                                                                                          \
            using U [[maybe_unused]] = twin<T>;                                                    \
            if constexpr (std::is_floating_point<T>::value)                                        \
                return floats;                                                                     \
            else                                                                                   \
                return integers;                                                                   \
        }                                                                                          \
    };
namespace
{
FLOAT_OPS(FLOAT_OP)
SIGNED_OPS(REAL_OP)
REAL_OPS(REAL_OP)
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
    int (*launch)(const struct cuda_unary *call, struct CUstream_st *stream);
};

#define ROW(op, type, T, R) {#op, type, launch<op, T, R>},
#define FLOAT_ROWS(op, ...)                                                                        \
    ROW(op, CUDA_FLOAT32, float, float)                                                            \
    ROW(op, CUDA_FLOAT64, double, double)                                                          \
    ROW(op, CUDA_FLOAT16, __half, __half) ROW(op, CUDA_BFLOAT16, __nv_bfloat16, __nv_bfloat16)
#define SIGNED_ROWS(op, ...)                                                                       \
    FLOAT_ROWS(op)                                                                                 \
    ROW(op, CUDA_INT8, int8_t, int8_t)                                                             \
    ROW(op, CUDA_INT16, int16_t, int16_t)                                                          \
    ROW(op, CUDA_INT32, int32_t, int32_t) ROW(op, CUDA_INT64, int64_t, int64_t)
#define REAL_ROWS(op, ...)                                                                         \
    SIGNED_ROWS(op)                                                                                \
    ROW(op, CUDA_UINT8, uint8_t, uint8_t)                                                          \
    ROW(op, CUDA_UINT16, uint16_t, uint16_t)                                                       \
    ROW(op, CUDA_UINT32, uint32_t, uint32_t) ROW(op, CUDA_UINT64, uint64_t, uint64_t)

/* clang-format off */
static const unary_row rows[] = {
    FLOAT_OPS(FLOAT_ROWS)
    SIGNED_OPS(SIGNED_ROWS)
    REAL_OPS(REAL_ROWS)
    ROW(IsNan, CUDA_FLOAT32, float, bool)
    ROW(IsNan, CUDA_FLOAT64, double, bool)
    ROW(IsNan, CUDA_FLOAT16, __half, bool)
    ROW(IsNan, CUDA_BFLOAT16, __nv_bfloat16, bool)
    ROW(LogicalNot, CUDA_BOOL, bool, bool)
};
/* clang-format on */

extern "C" int cuda_unary(const struct cuda_unary *call, struct CUstream_st *stream)
{
    for (const unary_row &row : rows)
        if (row.type == call->type && !strcmp(row.op, call->op))
            return row.launch(call, stream);
    return CUDA_INVALID_VALUE;
}
