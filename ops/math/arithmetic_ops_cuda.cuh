/* SPDX-License-Identifier: Apache-2.0
 *
 * What element-wise ops make of two numbers. Integers wrap around; `code` is set to the fault that
 * there is.
 */
#ifndef OPS_MATH_ARITHMETIC_OPS_CUDA_CUH
#define OPS_MATH_ARITHMETIC_OPS_CUDA_CUH

#include <cmath>

#include "ops/device/types_cuda.cuh"

#define VMATH_FUNCTION static __device__ __forceinline__
#include "ops/nn/activation_math.h"

/* Toward zero. The one quotient that does not fit wraps around. */
template <typename T> DEVICE_INLINE T divide(T x, T y, uint16_t &code)
{
    if (y == 0) {
        code = FAULT_DIVISION;
        return 0;
    }
    if constexpr (std::is_signed<T>::value)
        if (y == -1)
            return static_cast<T>(0 - static_cast<twin<T>>(x));
    return x / y;
}

template <typename T> DEVICE_INLINE T floor_mod(T x, T y, uint16_t &code)
{
    if (y == 0) {
        code = FAULT_DIVISION;
        return 0;
    }
    if constexpr (std::is_signed<T>::value) {
        T rest = y == -1 ? 0 : x % y;
        return rest && (rest < 0) != (y < 0) ? rest + y : rest;
    } else
        return x % y;
}

template <typename T> DEVICE_INLINE T floor_divide(T x, T y, uint16_t &code)
{
    T quotient = divide(x, y, code);
    if constexpr (std::is_signed<T>::value)
        if (y && floor_mod(x, y, code) && (x < 0) != (y < 0))
            return quotient - 1;
    return quotient;
}

/* As the CPU's (ops/math/arithmetic_cpu.c). */
template <typename T> DEVICE_INLINE T floor_mod(T x, T y)
{
    T rest = fmod(x, y);
    if (y == 0)
        return rest;
    if (rest == 0)
        return copysign(rest, y);
    return (rest < 0) != (y < 0) ? rest + y : rest;
}

template <typename T> DEVICE_INLINE T floor_divide(T x, T y)
{
    T rest = fmod(x, y), quotient = (x - rest) / y;
    if (y == 0)
        return x / y;
    if (rest != 0 && (rest < 0) != (y < 0))
        quotient -= 1;
    if (quotient == 0)
        return copysign(quotient, x / y);
    T whole = floor(quotient);
    return quotient - whole > static_cast<T>(0.5) ? whole + 1 : whole;
}

template <typename T> DEVICE_INLINE T power(T x, T y, uint16_t &code)
{
    twin<T> base = static_cast<twin<T>>(x), result = 1;
    if (y < 0) {
        code = FAULT_POWER;
        return 0;
    }
    for (; y; y >>= 1, base *= base)
        if (y & 1)
            result *= base;
    return static_cast<T>(result);
}

DEVICE_INLINE float through_softplus(float gradient, float x)
{
    return activation_softplus_grad(gradient, x);
}

DEVICE_INLINE double through_softplus(double gradient, double x)
{
    return activation_softplus_grad64(gradient, x);
}

/* X(op, floats, integers): T is the type of x and y, U its unsigned twin. */
#define BINARY_REAL_OPS(X)                                                                         \
    X(Add, x + y, U(x) + U(y))                                                                     \
    X(Sub, x - y, U(x) - U(y))                                                                     \
    X(Mul, x *y, U(x) * U(y))                                                                      \
    X(Div, x / y, divide(x, y, code))                                                              \
    X(FloorDiv, floor_divide(x, y), floor_divide(x, y, code))                                      \
    X(Mod, floor_mod(x, y), floor_mod(x, y, code))                                                 \
    /* A NaN on either side comes through: x if it is one, else y, since y is then not less. */    \
    X(Maximum, x > y || x != x ? x : y, x > y ? x : y)                                             \
    X(Minimum, x < y || x != x ? x : y, x < y ? x : y)
#define BINARY_SIGNED_OPS(X) X(Pow, pow(x, y), power(x, y, code))
#define BINARY_WORD_OPS(X) X(SquaredDifference, (x - y) * (x - y), (U(x) - U(y)) * (U(x) - U(y)))
/* x is an op's result, y what flows back. */
#define BINARY_GRADIENTS(X)                                                                        \
    X(TanhGrad, y *(1 - x * x), 0)                                                                 \
    X(SigmoidGrad, y *x *(1 - x), 0)                                                               \
    X(SqrtGrad, y *(1 / (x + x)), 0)                                                               \
    X(RsqrtGrad, y *x *(x * x) / -2, 0)                                                            \
    X(ReciprocalGrad, -y *x *x, 0)
/* x is what flows back, y the activation's input or result. */
#define BINARY_MASKS(X)                                                                            \
    X(ReluGrad, y > 0 ? x : 0, y > 0 ? x : 0)                                                      \
    X(Relu6Grad, y > 0 && y < 6 ? x : 0, y > 0 && y < 6 ? x : 0)
#define BINARY_SLOPES(X)                                                                           \
    X(EluGrad, y < 0 ? x * (y + 1) : x, 0)                                                         \
    X(SoftplusGrad, through_softplus(x, y), 0)

#define BINARY_OP(name, floats, integers)                                                          \
    struct name {                                                                                  \
        template <typename T>                                                                      \
        static __device__ __forceinline__ T of(T x, T y, [[maybe_unused]] uint16_t &code)          \
        {                                                                                          \
            using U [[maybe_unused]] = twin<T>;                                                    \
            if constexpr (std::is_floating_point<T>::value)                                        \
                return floats;                                                                     \
            else                                                                                   \
                return static_cast<T>(static_cast<U>(integers));                                   \
        }                                                                                          \
    };
namespace
{
BINARY_REAL_OPS(BINARY_OP)
BINARY_SIGNED_OPS(BINARY_OP)
BINARY_WORD_OPS(BINARY_OP)
BINARY_GRADIENTS(BINARY_OP)
BINARY_MASKS(BINARY_OP)
BINARY_SLOPES(BINARY_OP)
} // namespace

#endif
