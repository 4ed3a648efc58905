/* SPDX-License-Identifier: Apache-2.0
 *
 * What element-wise ops make of one number. The functions of float32 are those that the CPU has,
 * and have the same bits.
 */
#ifndef OPS_MATH_UNARY_OPS_CUDA_CUH
#define OPS_MATH_UNARY_OPS_CUDA_CUH

#include <cmath>

#include "ops/device/types_cuda.cuh"

#define VMATH_FUNCTION static __device__ __forceinline__
#include "ops/math/vmath.h"
#include "ops/nn/activation_math.h"

/* X(op, element): T is the type of x, U its unsigned twin. */
#define UNARY_FLOAT_OPS(X)                                                                         \
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
#define UNARY_SIGNED_OPS(X)                                                                        \
    X(Neg, -x, static_cast<T>(0 - static_cast<U>(x)))                                              \
    X(Abs, fabs(x), x < 0 ? static_cast<T>(0 - static_cast<U>(x)) : x)                             \
    X(Sign, x > 0 ? 1 : x < 0 ? -1 : x, (x > 0) - (x < 0)) /* NaN and 0: their own */              \
    X(Round, rint(x), x)
#define UNARY_REAL_OPS(X)                                                                          \
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

#define UNARY_FLOAT_OP(name, element)                                                              \
    struct name {                                                                                  \
        template <typename T> static __device__ __forceinline__ T of(T x)                          \
        {                                                                                          \
            return element;                                                                        \
        }                                                                                          \
    };
#define UNARY_REAL_OP(name, floats, integers)                                                      \
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
UNARY_FLOAT_OPS(UNARY_FLOAT_OP)
UNARY_SIGNED_OPS(UNARY_REAL_OP)
UNARY_REAL_OPS(UNARY_REAL_OP)
} // namespace

#endif
