/* SPDX-License-Identifier: Apache-2.0
 *
 * __nv_bfloat16 as CUDA stores and converts it. A NaN becomes 0x7fff.
 */
#ifndef CUDA_EMULATOR_BF16_H
#define CUDA_EMULATOR_BF16_H

#include <cstdint>
#include <cstring>

struct alignas(2) __nv_bfloat16 {
    unsigned short bits;
};

static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 b)
{
    return b.bits;
}

static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
    return {bits};
}

static inline float __bfloat162float(__nv_bfloat16 b)
{
    uint32_t bits = static_cast<uint32_t>(b.bits) << 16;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    if (x != x)
        return {0x7fff};
    return {static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

static inline __nv_bfloat16 __float2bfloat16(float x)
{
    return __float2bfloat16_rn(x);
}

#endif
