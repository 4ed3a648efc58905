/* SPDX-License-Identifier: Apache-2.0
 *
 * Decimal to binary in two stages: up to 15 digits and small powers of ten by one exact
 * multiplication or division (Clinger, "How to read floating point numbers accurately", 1990), and
 * all others by the C library, in the locale "C".
 */
#include "base/number.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "base/str.h"

#define LEADING_DIGITS 19
#define HALFWAY_MASK                                                                               \
    (((uint64_t)1 << 29) - 1) /* bits of a float64 that a float32 does not have                    \
                               */
#define HALFWAY ((uint64_t)1 << 28)
#define EXPONENT_LIMIT 100000000 /* far beyond any format, so that sums do not overflow */
#define SHORT_BYTES 64           /* texts below this are copied without allocating */

/* The number is +-leading x 10^exponent, or slightly more if digits were `cut`. */
struct decimal {
    bool negative, cut;
    uint64_t leading; /* the first 19 significant digits */
    int64_t exponent;
};

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

/* Parses "e+12", or nothing; false for anything else. */
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

/* Parses digits with at most one point among them, without the sign. */
static bool scan_decimal(const char *text, const char *end, struct decimal *decimal)
{
    const char *point = NULL;
    int n_leading = 0;
    int64_t n_digits = 0, n_behind = 0, exponent;
    for (; text < end; text++) {
        if (*text == '.' && !point) {
            point = text;
            continue;
        }
        if (!is_digit(*text))
            break;
        n_digits++;
        n_behind -= point != NULL;
        if (n_leading == LEADING_DIGITS) {
            n_behind++;
            decimal->cut |= *text != '0';
        } else if (decimal->leading || *text != '0') {
            decimal->leading = decimal->leading * 10 + (uint64_t)(*text - '0');
            n_leading++;
        }
    }
    if (n_digits == 0 || !scan_exponent(text, end, &exponent))
        return false;
    decimal->exponent = exponent + n_behind;
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

/* ---- conversion by the C library ---- */

/* Converts a scanned text to the nearest number of the format. */
static enum number_status convert(const char *text, size_t n, double *wide, float *narrow)
{
    char room[SHORT_BYTES];
    char *copy = n < sizeof room ? room : mem_alloc(n + 1);
    memcpy(copy, text, n);
    copy[n] = '\0';
    if (wide)
        str_to_float64(copy, wide);
    else
        str_to_float32(copy, narrow);
    if (copy != room)
        mem_free(copy);
    return isinf(wide ? *wide : (double)*narrow) ? NUMBER_RANGE : NUMBER_OK;
}

/* ---- the fast path, and both combined ---- */

static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Parses the form of most fields of a table: an optional minus and a few digits with a point among
 * them. Returns false for all other forms. */
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
    int64_t q = decimal.exponent;
    if (decimal.cut || decimal.leading > (uint64_t)1 << 53 || q < -22 || q > 22)
        return convert(text, n, value, NULL);
    double whole = (double)decimal.leading;
    *value = q < 0 ? whole / powers_of_ten[-q] : whole * powers_of_ten[q];
    if (decimal.negative)
        *value = -*value;
    return NUMBER_OK;
}

enum number_status number_float32(const char *text, size_t n, float *value)
{
    struct decimal decimal;
    bool special;
    double wide;
    uint64_t wide_bits;
    /* The nearest float64 may be rounded again unless it lies halfway between two float32. */
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
    int64_t q = decimal.exponent;
    if (decimal.cut || decimal.leading > 1U << 24 || q < -10 || q > 10)
        return convert(text, n, NULL, value);
    float whole = (float)decimal.leading, power = (float)powers_of_ten[q < 0 ? -q : q];
    *value = q < 0 ? whole / power : whole * power;
    if (decimal.negative)
        *value = -*value;
    return NUMBER_OK;
}

/* Parses digits only. */
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
