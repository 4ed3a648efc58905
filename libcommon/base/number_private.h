/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fast and the exact path of number.h share.
 */
#ifndef TF_BASE_NUMBER_PRIVATE_H
#define TF_BASE_NUMBER_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The text is +-DIGITS x 10^exponent; `leading` are the first 19 significant digits of DIGITS, and
 * it is +-leading x 10^leading_exponent if not `cut`, or a little more if it is. */
struct decimal {
    bool negative;
    bool cut;
    uint64_t leading;
    int64_t leading_exponent;
    const char *digits; /* from the first significant one; may hold a point */
    const char *end;
    int64_t exponent;
};

/* Precision of a binary format: p bits with the hidden one, normal numbers from 2^min_exponent. */
struct float_format {
    int precision, min_exponent, max_exponent;
};

/* Returns whether the decimal lies below (-1), on (0) or above (1) mantissa x 2^exponent. Exact.
 * Decimals and mantissas beyond the range of float64 are not accepted. */
int decimal_compare(const struct decimal *decimal, uint64_t mantissa, int exponent);

#endif
