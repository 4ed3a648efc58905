/* SPDX-License-Identifier: Apache-2.0
 *
 * __half as CUDA stores and converts it. A NaN becomes 0x7fff.
 */
#ifndef CUDA_EMULATOR_FP16_H
#define CUDA_EMULATOR_FP16_H

#include <cmath>
#include <cstdint>
#include <cstring>

struct alignas(2) __half {
    unsigned short bits;
};

static inline unsigned short __half_as_ushort(__half h)
{
    return h.bits;
}

static inline __half __ushort_as_half(unsigned short bits)
{
    return {bits};
}

static inline float __half2float(__half h)
{
    int exponent = h.bits >> 10 & 31, fraction = h.bits & 1023;
    float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                 : exponent     ? std::ldexp(1024.0f + static_cast<float>(fraction), exponent - 25)
                                : std::ldexp(static_cast<float>(fraction), -24);
    return h.bits & 0x8000 ? -size : size;
}

/* Counts units in the last place for the exponent, rounded to nearest even; if the count overflows,
 * it carries into the next exponent. */
static inline __half __float2half_rn(float x)
{
    unsigned short sign = std::signbit(x) ? 0x8000 : 0;
    float size = std::fabs(x);
    if (x != x)
        return {0x7fff};
    if (size >= 65520.0f)
        return {static_cast<unsigned short>(sign | 0x7c00)};
    int exponent = size < 0x1p-14f ? -14 : std::ilogb(size);
    int units = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
    int bits = ((exponent + 14) << 10) + units;
    return {static_cast<unsigned short>(sign | bits)};
}

static inline __half __float2half(float x)
{
    return __float2half_rn(x);
}

#endif
