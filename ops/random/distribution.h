/* SPDX-License-Identifier: Apache-2.0
 *
 * From words of 32 random bits to numbers. This uses only basic arithmetic and square roots, which
 * IEEE 754 defines exactly, so that bits depend neither on the C library nor on the instruction
 * set.
 *
 *   uniform, float32   w >> 8, times 2^-24; in [0, 1)
 *   uniform, float64   (w1 * 2^32 + w0) >> 11, times 2^-53; in [0, 1)
 *   normal             two from u1 in (0, 1] and u2 in [0, 1) by Box and Muller:
 *                      sqrt(-2 ln u1) cos(2 pi u2) and sqrt(-2 ln u1) sin(2 pi u2); for float32
 *                      u1 = (w0 + 1) 2^-32 and u2 = w1 2^-32, for float64 u1 = 1 - (the uniform of
 *                      w0 and w1), u2 = the uniform of w2 and w3
 *   integer in [0, n)  the upper 64 bits of n (w1 * 2^32 + w0): the bias is below n / 2^64
 *   class              the first whose running sum of weights exceeds a uniform float64 times the
 *                      sum of all; of counts, an integer in [0, the sum of all)
 */
#ifndef TF_OPS_RANDOM_DISTRIBUTION_H
#define TF_OPS_RANDOM_DISTRIBUTION_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Defined as in philox.h. */
#ifndef RANDOM_FUNCTION
#define RANDOM_FUNCTION static inline
#endif

RANDOM_FUNCTION float uniform_float32(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

RANDOM_FUNCTION uint64_t random_bits64(const uint32_t words[2])
{
    return (uint64_t)words[1] << 32 | words[0];
}

RANDOM_FUNCTION double uniform_float64(const uint32_t words[2])
{
    return (double)(random_bits64(words) >> 11) * 0x1p-53;
}

RANDOM_FUNCTION uint64_t uniform_integer(const uint32_t words[2], uint64_t n)
{
    return (uint64_t)((unsigned __int128)random_bits64(words) * n >> 64);
}

/* Natural logarithm of a normal number: x = 2^e m with m in [sqrt(1/2), sqrt(2)), and
 * ln m = 2 artanh((m - 1) / (m + 1)). */
RANDOM_FUNCTION double random_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    /* 0x3fe6a09e667f3bcd is sqrt(1/2): subtracting it makes the exponent that of x / sqrt(1/2) */
    int64_t e = (int64_t)(bits - UINT64_C(0x3fe6a09e667f3bcd)) >> 52;
    bits -= (uint64_t)e << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    double f = (m - 1.0) / (m + 1.0), f2 = f * f, sum = 1.0 / 23.0;
    for (int n = 21; n >= 1; n -= 2)
        sum = sum * f2 + 1.0 / n;
    return (double)e * 0.69314718055994530942 + 2.0 * f * sum;
}

/* e^x for x in [0, 700]: 2^k times the Taylor series within half of ln 2 around 0. */
RANDOM_FUNCTION double random_exp(double x)
{
    int k = (int)(x * 1.44269504088896340736 + 0.5);
    double r = x - k * 0.69314718055994530942, sum = 1.0;
    for (int n = 15; n >= 1; n--)
        sum = 1.0 + sum * r / n;
    return ldexp(sum, k);
}

/* Sine and cosine of 2 pi u, u in [0, 1): Taylor series within an eighth of a turn around the
 * nearest quarter. Divisions define the bits; multiplying by rounded reciprocals instead is faster,
 * and off by a few units in the last place. */
RANDOM_FUNCTION void random_sincos(double u, bool divide, double *sine, double *cosine)
{
    int quarter = (int)(4.0 * u + 0.5);
    double x = (u - 0.25 * quarter) * 6.28318530717958647693, x2 = x * x;
    double s = 1.0, c = 1.0;
    for (int n = 18; n >= 2; n -= 2) {
        double by_s = n * (n + 1), by_c = n * (n - 1);
        s = 1.0 - (divide ? s * x2 / by_s : s * (x2 * (1.0 / by_s)));
        c = 1.0 - (divide ? c * x2 / by_c : c * (x2 * (1.0 / by_c)));
    }
    s *= x;
    *sine = quarter & 1 ? c : s;
    *cosine = quarter & 1 ? s : c;
    if (quarter & 2)
        *sine = -*sine;
    if ((quarter + 1) & 2)
        *cosine = -*cosine;
}

RANDOM_FUNCTION void normal_pair(double u1, double u2, bool divide, double out[2])
{
    double radius = sqrt(-2.0 * random_log(u1)), sine, cosine;
    random_sincos(u2, divide, &sine, &cosine);
    out[0] = radius * cosine;
    out[1] = radius * sine;
}

/* Whether a double is within 64 units in its last place of the middle between two float32. */
RANDOM_FUNCTION uint64_t random_is_middle(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x1fffffff) - 0x0fffffc0 < 0x80;
}

/* Returns 1 where, without divisions, another float32 may be nearest. */
RANDOM_FUNCTION uint64_t normal_pair_rounded(const uint32_t words[2], bool divide, float out[2])
{
    double pair[2];
    normal_pair(((double)words[0] + 1.0) * 0x1p-32, (double)words[1] * 0x1p-32, divide, pair);
    out[0] = (float)pair[0];
    out[1] = (float)pair[1];
    return random_is_middle(pair[0]) | random_is_middle(pair[1]);
}

RANDOM_FUNCTION void normal_pair_float32(const uint32_t words[2], float out[2])
{
    normal_pair_rounded(words, true, out);
}

RANDOM_FUNCTION void normal_pair_float64(const uint32_t words[4], double out[2])
{
    normal_pair(1.0 - uniform_float64(words), uniform_float64(words + 2), true, out);
}

/* Returns the first of n running sums that exceeds x; the last one always does. */
#define DEFINE_FIRST_ABOVE(name, type)                                                             \
    RANDOM_FUNCTION int64_t name(const type *sums, int64_t n, type x)                              \
    {                                                                                              \
        int64_t low = 0, high = n - 1;                                                             \
        while (low < high) {                                                                       \
            int64_t middle = low + (high - low) / 2;                                               \
            if (sums[middle] > x)                                                                  \
                high = middle;                                                                     \
            else                                                                                   \
                low = middle + 1;                                                                  \
        }                                                                                          \
        return low;                                                                                \
    }
DEFINE_FIRST_ABOVE(random_first_above, double)
DEFINE_FIRST_ABOVE(random_first_count_above, int64_t)

RANDOM_FUNCTION int64_t random_class(const double *sums, int64_t n, const uint32_t words[2])
{
    double all = sums[n - 1];
    /* the product may round up to the sum, which no class exceeds */
    return random_first_above(sums, n, fmin(uniform_float64(words) * all, nextafter(all, 0.0)));
}

RANDOM_FUNCTION int64_t random_counted_class(const int64_t *sums, int64_t n,
                                             const uint32_t words[2])
{
    int64_t x = (int64_t)uniform_integer(words, (uint64_t)sums[n - 1]);
    return random_first_count_above(sums, n, x);
}

#endif
