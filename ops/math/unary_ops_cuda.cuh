/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise ops of one number. The functions of float32 are those of the CPU, with the same
 * bits.
 */
#ifndef OPS_MATH_UNARY_OPS_CUDA_CUH
#define OPS_MATH_UNARY_OPS_CUDA_CUH

#include <cmath>

#include "ops/device/types_cuda.cuh"
#include "ops/math/elementwise_ops.h"

#define VMATH_FUNCTION static __device__ __forceinline__
#include "ops/math/vmath.h"
#include "ops/nn/activation_math.h"

#define BY_TYPE(name, single, twofold)                                                             \
    DEVICE_INLINE float name(float x)                                                              \
    {                                                                                              \
        return single;                                                                             \
    }                                                                                              \
    DEVICE_INLINE double name(double x)                                                            \
    {                                                                                              \
        return twofold;                                                                            \
    }
DEVICE_INLINE float vmath_sin(float x)
{
    return fabsf(x) < VMATH_ANGLE_MAX ? vmath_sin_quadrant(x, 0) : sinf(x);
}

DEVICE_INLINE float vmath_cos(float x)
{
    return fabsf(x) < VMATH_ANGLE_MAX ? vmath_sin_quadrant(x, 1) : cosf(x);
}

DEVICE_INLINE double sigmoid(double x)
{
    double e = exp(-fabs(x));
    return (x >= 0 ? 1 : e) / (1 + e);
}

#define FUNCTION(name) element_##name
#define BY_FLOAT(function) function
#define ELEMENT_FUNCTION(name) BY_TYPE(FUNCTION(name), vmath_##name(x), name(x))
ELEMENT_FUNCTIONS(ELEMENT_FUNCTION)
BY_TYPE(activation_expm1, activation_expm1_float32(x), activation_expm1_float64(x))
BY_TYPE(activation_softplus, activation_softplus_float32(x), activation_softplus_float64(x))

#define UNARY_OP(name, loop, types, grain, floats, integers)                                       \
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
OPS_OF_ONE(UNARY_OP)
} // namespace

#endif
