/* SPDX-License-Identifier: Apache-2.0
 *
 * Single values of a tensor's literal. Every scan returns the end of what it read, or NULL if the
 * text is no such value.
 */
#ifndef TF_TENSOR_LITERAL_H
#define TF_TENSOR_LITERAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest number in its text, with the terminator. */
#define LITERAL_BYTES 512

struct literal_number {
    bool negative;
    bool whole;      /* written without a point and an exponent */
    bool exact;      /* false: more digits than fit */
    uint64_t digits; /* value = digits * 10^exponent */
    int exponent;
    double special; /* nan or inf; 0: none */
};

const char *literal_number(const char *text, struct literal_number *number);

/* Returns the double, or if `single` the float, nearest to the number at [text, end). */
double literal_float(const struct literal_number *number, const char *text, const char *end,
                     bool single);

/* "1+2j", "2j", or a real number alone. */
const char *literal_complex(const char *text, bool *imaginary, float value[2]);

/* A quoted string; stores its bytes unless `out` is NULL. */
const char *literal_string(const char *text, char *out, size_t *n);

#endif
