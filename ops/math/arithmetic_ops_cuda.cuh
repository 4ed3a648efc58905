/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise ops of two numbers. Integers wrap around; `code` is set if there is a fault.
 */
#ifndef OPS_MATH_ARITHMETIC_OPS_CUDA_CUH
#define OPS_MATH_ARITHMETIC_OPS_CUDA_CUH

#include <cmath>

#include "ops/device/types_cuda.cuh"
#include "ops/math/elementwise_ops.h"

#define VMATH_FUNCTION static __device__ __forceinline__
#include "ops/nn/activation_math.h"

/* Rounds toward zero. The only quotient that does not fit wraps around. */
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

/* The same as on the CPU (ops/math/binary_loops_cpu.c). */
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

template <typename T> DEVICE_INLINE T power(T x, T y)
{
    return pow(x, y);
}

DEVICE_INLINE float power(float x, float y)
{
    return vmath_pow(x, y);
}

DEVICE_INLINE float activation_softplus_grad(float gradient, float x)
{
    return activation_softplus_grad_float32(gradient, x);
}

DEVICE_INLINE double activation_softplus_grad(double gradient, double x)
{
    return activation_softplus_grad_float64(gradient, x);
}

#define BY_FLOAT(function) function
#define CHECKED(function) function(x, y, code)
#define BINARY_OP(name, loop, types, grain, floats, integers)                                      \
    struct name {                                                                                  \
        template <typename T>                                                                      \
        static __device__ __forceinline__ T of(T x, T y, [[maybe_unused]] uint16_t &code)          \
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
OPS_OF_TWO(BINARY_OP)
} // namespace

#endif
