/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of narrow.h, for files that are compiled for newer processors. They use the compiler's
 * vectors, of the processor's length (the compiler splits longer ones). Each case is computed for
 * all lanes, and masks select.
 */
#ifndef TF_TENSOR_NARROW_PRIVATE_H
#define TF_TENSOR_NARROW_PRIVATE_H

#include <string.h>
#ifdef __F16C__
#include <immintrin.h>
#endif

#include "tensor/dtype.h"

#if defined(__AVX512BW__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif

typedef uint16_t halves __attribute__((vector_size(2 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));
typedef int32_t integers __attribute__((vector_size(4 * LANES)));
typedef float floats __attribute__((vector_size(4 * LANES)));

/* Takes addresses, as vector arguments have no stable ABI. */
static inline void choose(words *value, const integers *where, const words *other)
{
    *value = (*value & ~(words)*where) | (*other & (words)*where);
}

static inline void load_halves(words *to, const uint16_t *from)
{
    halves value;
    memcpy(&value, from, sizeof value);
    *to = __builtin_convertvector(value, words);
}

static inline void store_halves(uint16_t *to, const words *from)
{
    halves value = __builtin_convertvector(*from, halves);
    memcpy(to, &value, sizeof value);
}

static inline void widen_bfloat16(const uint16_t *from, float *to)
{
    words bits;
    load_halves(&bits, from);
    bits <<= 16;
    memcpy(to, &bits, sizeof bits);
}

static inline void narrow_bfloat16(const float *from, uint16_t *to)
{
    words bits, rounded, quiet;
    memcpy(&bits, from, sizeof bits);
    integers is_nan = (integers)(bits & 0x7fffffff) > 0x7f800000;
    rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    quiet = bits >> 16 | 0x40;
    choose(&rounded, &is_nan, &quiet);
    store_halves(to, &rounded);
}

static inline void widen_float16(const uint16_t *from, float *to)
{
    words half, bits;
    load_halves(&half, from);
    integers magnitude = (integers)(half & 0x7fff);
    integers is_large = magnitude >= 0x7c00, is_small = magnitude < 0x400;
    words large = 0x7f800000 | (half & 0x3ff) << 13; /* infinity, NaN with its payload */
    floats small = __builtin_convertvector(magnitude, floats) * 0x1p-24f;
    words small_bits = (words)small;
    bits = (half & 0x7fff) << 13;
    bits += (127 - 15) << 23;
    choose(&bits, &is_large, &large);
    choose(&bits, &is_small, &small_bits);
    bits |= (half & 0x8000) << 16;
    memcpy(to, &bits, sizeof bits);
}

#if defined(__F16C__) && LANES >= 8 /* the instruction takes 8 */
static inline void narrow_float16(const float *from, uint16_t *to)
{
    for (int i = 0; i < LANES; i += 8)
        _mm_storeu_si128((void *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
}
#else
/* As that instruction. Below 2^-14, adding 1/2 rounds to a multiple of 2^-24, as for a
 * subnormal. */
static inline void narrow_float16(const float *from, uint16_t *to)
{
    words bits, result, infinity = (words){0} + 0x7c00;
    memcpy(&bits, from, sizeof bits);
    words magnitude = bits & 0x7fffffff;
    integers compared = (integers)magnitude;
    integers is_nan = compared > 0x7f800000, is_large = compared >= 0x477ff000; /* 65520 */
    integers is_small = compared < 0x38800000;                                  /* 2^-14 */
    words nan = 0x7e00 | (magnitude >> 13 & 0x1ff);
    floats shifted = (floats)magnitude + 0.5f;
    words small = (words)shifted - 0x3f000000;
    result = (magnitude + 0xfff + (magnitude >> 13 & 1) - ((127 - 15) << 23)) >> 13;
    choose(&result, &is_small, &small);
    choose(&result, &is_large, &infinity);
    choose(&result, &is_nan, &nan);
    result |= bits >> 16 & 0x8000;
    store_halves(to, &result);
}
#endif

static inline void widen_array(enum dtype type, const uint16_t *from, float *to, int64_t n)
{
    bool brain = type == BFLOAT16;
    int64_t i = 0;
    for (; brain && i + LANES <= n; i += LANES)
        widen_bfloat16(from + i, to + i);
    for (; !brain && i + LANES <= n; i += LANES)
        widen_float16(from + i, to + i);
    for (; i < n; i++)
        to[i] = brain ? bfloat16_to_float32(from[i]) : float16_to_float32(from[i]);
}

static inline void narrow_array(enum dtype type, const float *from, uint16_t *to, int64_t n)
{
    bool brain = type == BFLOAT16;
    int64_t i = 0;
    for (; brain && i + LANES <= n; i += LANES)
        narrow_bfloat16(from + i, to + i);
    for (; !brain && i + LANES <= n; i += LANES)
        narrow_float16(from + i, to + i);
    for (; i < n; i++)
        to[i] = brain ? float32_to_bfloat16(from[i]) : float32_to_float16(from[i]);
}

#endif
