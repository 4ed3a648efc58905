/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact comparison of a decimal with a binary fraction, by integers of up to 5120 bits: both sides
 * are multiplied with what makes them whole. With D digits kept the decimal's integer has at most
 * 3.33 D bits and the power of five on the other side 2.33 (D + 344), so 800 digits fit.
 */
#include <string.h>

#include "base/error.h"
#include "base/number_private.h"

#define BIG_WORDS 160
#define DIGITS_KEPT 800 /* no point between two neighbouring doubles has more than 768 digits */

struct big {
    uint32_t words[BIG_WORDS]; /* least first */
    int n;
};

static void big_multiply_add(struct big *big, uint32_t factor, uint32_t addend)
{
    uint64_t carry = addend;
    for (int i = 0; i < big->n; i++) {
        carry += (uint64_t)big->words[i] * factor;
        big->words[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) {
        BUG_ON(big->n == BIG_WORDS);
        big->words[big->n++] = (uint32_t)carry;
    }
}

static void big_multiply_power_of_five(struct big *big, int64_t power)
{
    for (; power >= 13; power -= 13)
        big_multiply_add(big, 1220703125, 0); /* 5^13 */
    for (; power > 0; power--)
        big_multiply_add(big, 5, 0);
}

static void big_shift_left(struct big *big, int64_t bits)
{
    int words = (int)(bits / 32);
    BUG_ON(big->n + words > BIG_WORDS);
    memmove(big->words + words, big->words, (size_t)big->n * sizeof *big->words);
    memset(big->words, 0, (size_t)words * sizeof *big->words);
    big->n += words;
    if (bits % 32)
        big_multiply_add(big, (uint32_t)1 << (bits % 32), 0);
}

static int big_compare(const struct big *a, const struct big *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (int i = a->n - 1; i >= 0; i--)
        if (a->words[i] != b->words[i])
            return a->words[i] < b->words[i] ? -1 : 1;
    return 0;
}

/* The digits as an integer; what is beyond DIGITS_KEPT only as "a little more". */
static void big_from_digits(struct big *big, const struct decimal *decimal, int64_t *exponent)
{
    int kept = 0;
    bool more = false;
    *exponent = decimal->exponent;
    big->n = 0;
    for (const char *c = decimal->digits; c < decimal->end; c++) {
        if (*c == '.')
            continue;
        if (kept < DIGITS_KEPT) {
            big_multiply_add(big, 10, (uint32_t)(*c - '0'));
            kept++;
        } else {
            more |= *c != '0';
            ++*exponent;
        }
    }
    if (more) {
        big_multiply_add(big, 10, 1);
        --*exponent;
    }
}

int decimal_compare(const struct decimal *decimal, uint64_t mantissa, int exponent)
{
    struct big left, right = {.n = 0};
    int64_t ten;
    big_from_digits(&left, decimal, &ten);
    for (; mantissa; mantissa >>= 32)
        right.words[right.n++] = (uint32_t)mantissa;
    if (ten >= 0)
        big_multiply_power_of_five(&left, ten);
    else
        big_multiply_power_of_five(&right, -ten);
    int64_t two = ten - exponent;
    if (two >= 0)
        big_shift_left(&left, two);
    else
        big_shift_left(&right, -two);
    return big_compare(&left, &right);
}
