/* SPDX-License-Identifier: Apache-2.0
 *
 * Decimal to binary in three stages, each for what the one before cannot decide:
 *   1. up to 15 digits and small powers of ten: one exact multiplication or division (Clinger, "How
 *      to read floating point numbers accurately", 1990);
 *   2. 128-bit arithmetic with a bound on its error: right unless the interval holds a point where
 *      rounding changes;
 *   3. comparison of big integers with that point (number_exact.c).
 */
#include "base/number.h"

#include <string.h>

#include "base/number_private.h"

#define LEADING_DIGITS 19
#define HALFWAY_MASK                                                                               \
    (((uint64_t)1 << 29) - 1) /* bits of a float64 that a float32 does not have                    \
                               */
#define HALFWAY ((uint64_t)1 << 28)
#define EXPONENT_LIMIT 100000000 /* far beyond any format, so that sums do not overflow */

typedef unsigned __int128 u128;

static const struct float_format format64 = {53, -1022, 1023};
static const struct float_format format32 = {24, -126, 127};

/* 5^q for q a multiple of 28: mantissa (floor, top bit set) and exponent of two. */
static const struct power_of_five {
    uint64_t high, low;
    int exponent;
} powers_of_five[] = {
    {0xe1afa13afbd14d6d, 0x82189c09a3a1ec21, -973}, /* 5^-364 */
    {0xe3e27a444d8d98b7, 0xfd1b1b2308169b25, -908}, /* 5^-336 */
    {0xe61acf033d1a45df, 0x6fb92487298e33bd, -843}, /* 5^-308 */
    {0xe858ad248f5c22c9, 0xd1b3400f8f9cff68, -778}, /* 5^-280 */
    {0xea9c227723ee8bcb, 0x465e15a979c1cadc, -713}, /* 5^-252 */
    {0xece53cec4a314ebd, 0xa4f8bf5635246428, -648}, /* 5^-224 */
    {0xef340a98172aace4, 0x86fb897116c87c34, -583}, /* 5^-196 */
    {0xf18899b1bc3f8ca1, 0xdc44e6c3cb279ac1, -518}, /* 5^-168 */
    {0xf3e2f893dec3f126, 0x5a89dba3c3efccfa, -453}, /* 5^-140 */
    {0xf64335bcf065d37d, 0x4d4617b5ff4a16d5, -388}, /* 5^-112 */
    {0xf8a95fcf88747d94, 0x75a44c6397ce912a, -323}, /* 5^-84 */
    {0xfb158592be068d2e, 0xeed6e2f0f0d56712, -258}, /* 5^-56 */
    {0xfd87b5f28300ca0d, 0x8bca9d6e188853fc, -193}, /* 5^-28 */
    {0x8000000000000000, 0x0000000000000000, -127}, /* 5^0 */
    {0x813f3978f8940984, 0x4000000000000000, -62},  /* 5^28 */
    {0x82818f1281ed449f, 0xbff8f10e7a8921a4, 3},    /* 5^56 */
    {0x83c7088e1aab65db, 0x792667c6da79e0fa, 68},   /* 5^84 */
    {0x850fadc09923329e, 0x03e2cf6bc604ddb0, 133},  /* 5^112 */
    {0x865b86925b9bc5c2, 0x0b8a2392ba45a9b2, 198},  /* 5^140 */
    {0x87aa9aff79042286, 0x90fb44d2f05d0842, 263},  /* 5^168 */
    {0x88fcf317f22241e2, 0x441fece3bdf81f03, 328},  /* 5^196 */
    {0x8a5296ffe33cc92f, 0x82bd6b70d99aaa6f, 393},  /* 5^224 */
    {0x8bab8eefb6409c1a, 0x1ad089b6c2f7548e, 458},  /* 5^252 */
    {0x8d07e33455637eb2, 0xdb0b487b6423e1e8, 523},  /* 5^280 */
    {0x8e679c2f5e44ff8f, 0x570f09eaa7ea7648, 588},  /* 5^308 */
};
#define POWER_STEP 28
#define POWER_FIRST (-13)

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

static bool equals_word(const char *text, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (!word[i] || (text[i] | 0x20) != word[i])
            return false;
    return word[n] == '\0';
}

/* "e+12"; false if there is something else. */
static bool scan_exponent(const char *text, const char *end, int64_t *exponent)
{
    *exponent = 0;
    if (text == end)
        return true;
    if ((*text | 0x20) != 'e')
        return false;
    text++;
    bool negative = text < end && *text == '-';
    if (text < end && (*text == '-' || *text == '+'))
        text++;
    if (text == end)
        return false;
    for (; text < end; text++) {
        if (!is_digit(*text))
            return false;
        if (*exponent < EXPONENT_LIMIT)
            *exponent = *exponent * 10 + (*text - '0');
    }
    if (negative)
        *exponent = -*exponent;
    return true;
}

/* Digits with at most one point among them, without the sign. */
static bool scan_decimal(const char *text, const char *end, struct decimal *decimal)
{
    const char *point = NULL;
    int n_leading = 0;
    int64_t n_digits = 0, n_fraction = 0, n_cut = 0;
    decimal->digits = NULL;
    for (; text < end; text++) {
        if (*text == '.' && !point) {
            point = text;
            continue;
        }
        if (!is_digit(*text))
            break;
        n_digits++;
        n_fraction += point != NULL;
        if (*text != '0' && !decimal->digits)
            decimal->digits = text;
        if (!decimal->digits)
            continue;
        if (n_leading < LEADING_DIGITS) {
            decimal->leading = decimal->leading * 10 + (uint64_t)(*text - '0');
            n_leading++;
        } else {
            n_cut++;
            decimal->cut |= *text != '0';
        }
    }
    decimal->end = text;
    int64_t exponent;
    if (n_digits == 0 || !scan_exponent(text, end, &exponent))
        return false;
    decimal->exponent = exponent - n_fraction;
    decimal->leading_exponent = decimal->exponent + n_cut;
    return true;
}

/* leading x 10^leading_exponent as a 128-bit mantissa (top bit set) and an exponent of two, rounded
 * down by less than 4 units. */
static u128 decimal_approximate(const struct decimal *decimal, int *exponent)
{
    int q = (int)decimal->leading_exponent;
    int step = (q - POWER_FIRST * POWER_STEP) / POWER_STEP;
    const struct power_of_five *power = &powers_of_five[step];
    uint64_t factor = 1; /* at most 5^27, below 2^63 */
    for (int rest = q - (step + POWER_FIRST) * POWER_STEP; rest > 0; rest--)
        factor *= 5;

    u128 a = (u128)decimal->leading * factor;
    uint64_t a_high = (uint64_t)(a >> 64);
    int shift = a_high ? __builtin_clzll(a_high) : 64 + __builtin_clzll((uint64_t)a);
    a <<= shift;
    a_high = (uint64_t)(a >> 64);
    uint64_t a_low = (uint64_t)a;

    u128 middle = ((u128)a_low * power->low >> 64) + (uint64_t)((u128)a_high * power->low);
    u128 middle2 = (u128)a_low * power->high + (uint64_t)middle;
    u128 high = (u128)a_high * power->high + ((u128)a_high * power->low >> 64) + (middle >> 64) +
                (middle2 >> 64);
    *exponent = power->exponent + q - shift + 128;
    if (!(high >> 127)) {
        high <<= 1;
        --*exponent;
    }
    return high;
}

/* mantissa / 2^(128 - kept), to nearest, ties to even. */
static uint64_t round_mantissa(u128 mantissa, int kept)
{
    if (kept < 0)
        return 0;
    u128 half = (u128)1 << (127 - kept);
    uint64_t whole = kept == 0 ? 0 : (uint64_t)(mantissa >> (128 - kept));
    u128 rest = kept == 0 ? mantissa : mantissa & ((half << 1) - 1);
    return whole + (rest > half || (rest == half && (whole & 1)));
}

/* Mantissa and exponent of the nearest number of the format: value = mantissa x 2^exponent. */
static uint64_t decimal_round(const struct decimal *decimal, const struct float_format *format,
                              int *exponent)
{
    int scale;
    u128 low = decimal_approximate(decimal, &scale);
    u128 high = low + (decimal->cut ? (u128)1 << 70 : 4);
    /* Bits of mantissa that the format has for a value whose leading bit is 2^(scale + 127). */
    int below_least = format->min_exponent - (scale + 127);
    int kept = format->precision - (below_least > 0 ? below_least : 0);
    *exponent = scale + 128 - (kept < 0 ? 0 : kept);
    uint64_t mantissa = round_mantissa(low, kept);
    if (high > low && round_mantissa(high, kept) == mantissa)
        return mantissa;
    /* Somewhere in the interval lies a point halfway between two neighbours. */
    uint64_t below = kept > 0 ? (uint64_t)(low >> (128 - kept)) : 0;
    int side = decimal_compare(decimal, 2 * below + 1, *exponent - 1);
    return below + (side > 0 || (side == 0 && (below & 1)));
}

/* 2^exponent x mantissa as the bits of the format; false beyond its range. */
static bool assemble(uint64_t mantissa, int exponent, const struct float_format *format,
                     uint64_t *bits)
{
    uint64_t hidden = (uint64_t)1 << (format->precision - 1);
    if (mantissa < hidden) { /* subnormal: the exponent is the least one */
        *bits = mantissa;
        return true;
    }
    if (mantissa == hidden << 1) {
        mantissa = hidden;
        exponent++;
    }
    int leading = exponent + format->precision - 1;
    if (leading > format->max_exponent)
        return false;
    *bits = (uint64_t)(leading + format->max_exponent) * hidden + (mantissa - hidden);
    return true;
}

static enum number_status scan(const char *text, size_t n, struct decimal *decimal, bool *special,
                               double *value)
{
    const char *end = text + n;
    memset(decimal, 0, sizeof *decimal);
    *special = false;
    if (n && (*text == '-' || *text == '+')) {
        decimal->negative = *text == '-';
        text++;
    }
    if (scan_decimal(text, end, decimal))
        return NUMBER_OK;
    *special = true;
    n = (size_t)(end - text);
    if (equals_word(text, n, "inf") || equals_word(text, n, "infinity"))
        *value = decimal->negative ? -__builtin_inf() : __builtin_inf();
    else if (equals_word(text, n, "nan"))
        *value = __builtin_nan("");
    else
        return NUMBER_INVALID;
    return NUMBER_OK;
}

static enum number_status round_to(const struct decimal *decimal, const struct float_format *format,
                                   uint64_t *bits)
{
    *bits = 0;
    if (decimal->leading == 0 || decimal->leading_exponent < -343)
        return NUMBER_OK;
    if (decimal->leading_exponent > 308)
        return NUMBER_RANGE;
    int exponent;
    uint64_t mantissa = decimal_round(decimal, format, &exponent);
    return assemble(mantissa, exponent, format, bits) ? NUMBER_OK : NUMBER_RANGE;
}

static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Reads the form that most fields of a table have: a sign, a few digits, a point among them. False
 * for all else. */
static bool scan_short(const char *text, size_t n, double *value)
{
    const char *end = text + n, *point = NULL;
    bool negative = n && *text == '-';
    uint64_t whole = 0;
    text += negative;
    if (n > LEADING_DIGITS || end - text < 2)
        return false;
    for (const char *at = text; at < end; at++) {
        unsigned digit = (unsigned char)*at - '0';
        if (digit < 10)
            whole = whole * 10 + digit;
        else if (*at == '.' && !point)
            point = at;
        else
            return false;
    }
    *value = (double)whole / powers_of_ten[point ? end - point - 1 : 0];
    *value = negative ? -*value : *value;
    return whole <= (uint64_t)1 << 53;
}

enum number_status number_float64(const char *text, size_t n, double *value)
{
    struct decimal decimal;
    bool special;
    if (scan_short(text, n, value))
        return NUMBER_OK;
    enum number_status status = scan(text, n, &decimal, &special, value);
    if (status || special)
        return status;
    int64_t q = decimal.leading_exponent;
    if (!decimal.cut && decimal.leading <= (uint64_t)1 << 53 && q >= -22 && q <= 22) {
        double whole = (double)decimal.leading;
        *value = q < 0 ? whole / powers_of_ten[-q] : whole * powers_of_ten[q];
    } else {
        uint64_t bits;
        if ((status = round_to(&decimal, &format64, &bits)))
            return status;
        memcpy(value, &bits, sizeof *value);
    }
    if (decimal.negative)
        *value = -*value;
    return NUMBER_OK;
}

enum number_status number_float32(const char *text, size_t n, float *value)
{
    static const float powers[] = {1e0F, 1e1F, 1e2F, 1e3F, 1e4F, 1e5F,
                                   1e6F, 1e7F, 1e8F, 1e9F, 1e10F};
    struct decimal decimal;
    bool special;
    double wide;
    uint64_t wide_bits;
    /* A float64 that is nearest may be rounded again, unless it lies halfway between two float32.
     */
    if (scan_short(text, n, &wide)) {
        memcpy(&wide_bits, &wide, sizeof wide);
        *value = (float)wide;
        if ((wide_bits & HALFWAY_MASK) != HALFWAY)
            return NUMBER_OK;
    }
    enum number_status status = scan(text, n, &decimal, &special, &wide);
    if (status)
        return status;
    if (special) {
        *value = (float)wide;
        return NUMBER_OK;
    }
    int64_t q = decimal.leading_exponent;
    if (!decimal.cut && decimal.leading <= 1U << 24 && q >= -10 && q <= 10) {
        float whole = (float)decimal.leading;
        *value = q < 0 ? whole / powers[-q] : whole * powers[q];
    } else {
        uint64_t bits;
        if ((status = round_to(&decimal, &format32, &bits)))
            return status;
        uint32_t narrow = (uint32_t)bits;
        memcpy(value, &narrow, sizeof *value);
    }
    if (decimal.negative)
        *value = -*value;
    return NUMBER_OK;
}

/* Digits only. */
static enum number_status scan_whole(const char *text, size_t n, uint64_t *value)
{
    bool overflow = false;
    *value = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(text[i]))
            return NUMBER_INVALID;
        overflow |= __builtin_mul_overflow(*value, 10, value);
        overflow |= __builtin_add_overflow(*value, (uint64_t)(text[i] - '0'), value);
    }
    return n == 0 ? NUMBER_INVALID : overflow ? NUMBER_RANGE : NUMBER_OK;
}

enum number_status number_int64(const char *text, size_t n, int64_t *value)
{
    bool negative = n && *text == '-', sign = negative || (n && *text == '+');
    uint64_t size;
    enum number_status status = scan_whole(text + sign, n - sign, &size);
    if (status)
        return status;
    if (size > (uint64_t)INT64_MAX + negative)
        return NUMBER_RANGE;
    *value = negative ? (int64_t)(0 - size) : (int64_t)size;
    return NUMBER_OK;
}

enum number_status number_uint64(const char *text, size_t n, uint64_t *value)
{
    bool sign = n && *text == '+';
    if (n && *text == '-') {
        enum number_status status = scan_whole(text + 1, n - 1, value);
        return status || *value == 0 ? status : NUMBER_RANGE;
    }
    return scan_whole(text + sign, n - sign, value);
}
