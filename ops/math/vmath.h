/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementary functions of float32, written without branches or calls, so that a loop over them
 * becomes vector code on every instruction set, with the same bits on each. Errors against double
 * precision are below 2.5 units in the last place (tests/unit/ops/vmath.c); NaN, infinities, zeros
 * and denormals come out as in C's <math.h>. Polynomials: Chebyshev interpolation on the reduced
 * interval, but for pow, which has power series.
 */
#ifndef TF_OPS_MATH_VMATH_H
#define TF_OPS_MATH_VMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Other devices compile these functions, too, and get the same bits. */
#ifndef VMATH_FUNCTION
#define VMATH_FUNCTION static inline
#endif

VMATH_FUNCTION uint32_t vmath_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

VMATH_FUNCTION float vmath_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

VMATH_FUNCTION uint64_t vmath_bits64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

VMATH_FUNCTION double vmath_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Adding 1.5 * 2^23 rounds a small float to an integer, which is then in its lowest bits.
 */
#define VMATH_ROUND 12582912.0f
#define VMATH_ROUND_BITS 0x4b400000u

/* 2^n for n in [-126, 127]. */
VMATH_FUNCTION float vmath_power_of_two(int32_t n)
{
    return vmath_float((uint32_t)(n + 127) << 23);
}

/* e^x = 2^n e^r with |r| <= ln(2)/2. */
VMATH_FUNCTION float vmath_exp(float x)
{
    float bounded = x > 89.0f ? 89.0f : x;           /* beyond: infinity */
    bounded = bounded < -104.0f ? -104.0f : bounded; /* below: zero */
    float shifted = bounded * 1.44269504f + VMATH_ROUND;
    float whole = shifted - VMATH_ROUND;
    float r = bounded - whole * 0.693359375f;
    r = r - whole * -2.12194440e-4f;
    float p = 1.98910304e-4f;
    p = p * r + 1.39336858e-3f;
    p = p * r + 8.33331048e-3f;
    p = p * r + 4.1666463e-2f;
    p = p * r + 1.66666672e-1f;
    p = p * r + 0.5f;
    p = p * (r * r) + r + 1.0f;
    /* Multiplies by two halves, as 2^n may exceed a float. A NaN has no n, and stays itself
     * whatever these are: they are no NaN, as their fraction is 0. */
    int32_t n = (int32_t)(vmath_bits(shifted) - VMATH_ROUND_BITS), half = n >> 1;
    return p * vmath_power_of_two(half) * vmath_power_of_two(n - half);
}

/* ln(x) = e ln(2) + ln(1 + f) with 1 + f in [sqrt(1/2), sqrt(2)). */
VMATH_FUNCTION float vmath_log(float x)
{
    int denormal = x < 1.17549435e-38f;
    float scaled = denormal ? x * 8388608.0f : x;
    /* The exponent relative to sqrt(1/2), so that the mantissa falls into the interval. */
    uint32_t shifted = vmath_bits(scaled) - 0x3f3504f3u;
    float e = (float)((int32_t)shifted >> 23) - (denormal ? 23.0f : 0.0f);
    float f = vmath_float((shifted & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    float p = 6.97251856e-2f;
    p = p * f - 1.14812121e-1f;
    p = p * f + 1.16857849e-1f;
    p = p * f - 1.24255233e-1f;
    p = p * f + 1.42490074e-1f;
    p = p * f - 1.66678071e-1f;
    p = p * f + 2.0000717e-1f;
    p = p * f - 2.4999997e-1f;
    p = p * f + 3.33333313e-1f;
    float square = f * f;
    float tail = f * square * p + e * -2.12194440e-4f - 0.5f * square;
    float y = f + tail + e * 0.693359375f;
    y = x == INFINITY ? INFINITY : y;
    y = x == 0.0f ? -INFINITY : y;
    return x < 0.0f || x != x ? NAN : y;
}

/* ln(1 + x): the logarithm of the rounded sum, corrected by the rounding error. */
VMATH_FUNCTION float vmath_log1p(float x)
{
    float u = 1.0f + x;
    float lost = x - (u - 1.0f);
    float y = vmath_log(u);
    y = u > 0.0f && u < INFINITY ? y + lost / u : y;
    return x == 0.0f ? x : y; /* -0, too */
}

VMATH_FUNCTION float vmath_sigmoid(float x)
{
    float e = vmath_exp(-fabsf(x)); /* in (0, 1]: nothing overflows, small results stay exact */
    return (x >= 0.0f ? 1.0f : e) / (1.0f + e);
}

VMATH_FUNCTION float vmath_tanh(float x)
{
    float size = fabsf(x), z = x * x;
    float p = -6.04516501e-3f;
    p = p * z + 2.09613293e-2f;
    p = p * z - 5.38432635e-2f;
    p = p * z + 1.33327186e-1f;
    p = p * z - 3.33333284e-1f;
    float small = x + x * z * p;
    float large = 1.0f - 2.0f / (vmath_exp(2.0f * size) + 1.0f);
    return copysignf(size < 0.625f ? small : large, x); /* of -0 `small` is 0 */
}

/* Near zero x times a polynomial of x^2; else 1 - e^(ln erfc), with ln erfc as a polynomial. */
VMATH_FUNCTION float vmath_erf(float x)
{
    float size = fabsf(x), z = x * x;
    float p = 8.38707419e-5f;
    p = p * z - 8.14708124e-4f;
    p = p * z + 5.20145614e-3f;
    p = p * z - 2.68595889e-2f;
    p = p * z + 1.12836994e-1f;
    p = p * z - 3.76126349e-1f;
    p = p * z + 1.28379166e-1f;
    float t = size > 4.0f ? 4.0f : size;
    float q = 1.6435697e-6f;
    q = q * t - 4.61779127e-5f;
    q = q * t + 5.97743492e-4f;
    q = q * t - 4.76357527e-3f;
    q = q * t + 2.64310185e-2f;
    q = q * t - 1.1009448e-1f;
    q = q * t - 6.31814539e-1f;
    q = q * t - 1.13023758f;
    q = q * t + 3.20441526e-4f;
    float large = 1.0f - vmath_exp(q);
    return size < 0.92f ? x + x * p : copysignf(large, x);
}

/* Adding 1.5 * 2^52 rounds a smaller double to an integer. */
#define VMATH_ROUND64 6755399441055744.0
#define VMATH_ROUND64_BITS 0x4338000000000000u

/* x^y = 2^(y log2 |x|), in double precision; special cases as of C's pow. With |x| = 2^e m, m in
 * [sqrt(1/2), sqrt(2)), ln m is 2 artanh((m - 1) / (m + 1)). */
VMATH_FUNCTION float vmath_pow(float x, float y)
{
    double size = fabs((double)x), power = (double)y;
    uint64_t shifted = vmath_bits64(size) - 0x3fe6a09e667f3bcdu; /* as in random_log */
    uint64_t exponent = (shifted >> 52 ^ 0x800u) - 0x800u;
    double m = vmath_double(vmath_bits64(size) - (exponent << 52));
    double e = vmath_double(exponent + VMATH_ROUND64_BITS) - VMATH_ROUND64;
    double f = (m - 1.0) / (m + 1.0), z = f * f;
    double p = 1.0 / 15.0;
    p = p * z + 1.0 / 13.0;
    p = p * z + 1.0 / 11.0;
    p = p * z + 1.0 / 9.0;
    p = p * z + 1.0 / 7.0;
    p = p * z + 1.0 / 5.0;
    p = p * z + 1.0 / 3.0;
    double log2 = e + 2.8853900817779268 * (f + f * z * p);
    log2 = size == 0.0 ? -(double)INFINITY : size < (double)INFINITY ? log2 : (double)INFINITY;
    double t = size == 1.0 ? 0.0 : power * log2;
    t = t > 300.0 ? 300.0 : t < -300.0 ? -300.0 : t; /* beyond are infinity and zero */
    double whole = t + VMATH_ROUND64, r = (t - (whole - VMATH_ROUND64)) * 0.69314718055994531;
    p = 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * (r * r) + r + 1.0;
    float result = (float)(p * vmath_double((vmath_bits64(whole) + 1023u) << 52));
    /* Floats from 2^24 on are even integers. */
    double half = 0.5 * power;
    int is_even = fabs(power) >= 16777216.0 || (half + VMATH_ROUND64) - VMATH_ROUND64 == half;
    int is_odd = !is_even && (power + VMATH_ROUND64) - VMATH_ROUND64 == power;
    result = is_odd ? copysignf(result, x) : result;
    int is_root = x < 0.0f && size < (double)INFINITY && !is_even && !is_odd;
    result = is_root || x != x || y != y ? NAN : result;
    return y == 0.0f || x == 1.0f ? 1.0f : result;
}

/* Up to here the reduction below is accurate enough; beyond, loops use <math.h>. */
#define VMATH_ANGLE_MAX 1e6f

/* sin(x + quadrants * pi/2), in double precision: |x| < VMATH_ANGLE_MAX. */
VMATH_FUNCTION float vmath_sin_quadrant(float x, uint64_t quadrants)
{
    double shifted = (double)x * 0.63661977236758138 + VMATH_ROUND64;
    double whole = shifted - VMATH_ROUND64;
    double r = ((double)x - whole * 1.57079632673412561417) - whole * 6.07710050650619224932e-11;
    double z = r * r;
    double s = -2.480453521280658e-08;
    s = s * z + 2.7555979238503437e-06;
    s = s * z - 1.9841266879251957e-04;
    s = s * z + 8.333333331041805e-03;
    s = s * z - 1.666666666666383e-01;
    s = copysign(r + r * z * s, r); /* of -0 the sum is 0 */
    double c = 2.069999571626635e-09;
    c = c * z - 2.755636363118937e-07;
    c = c * z + 2.4801585192962402e-05;
    c = c * z - 1.3888888887261504e-03;
    c = c * z + 4.166666666666466e-02;
    c = 1.0 - 0.5 * z + z * z * c;
    uint64_t quadrant = vmath_bits64(shifted) + quadrants;
    double y = quadrant & 1 ? c : s;
    return (float)(quadrant & 2 ? -y : y);
}

#endif
