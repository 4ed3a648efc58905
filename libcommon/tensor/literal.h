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

#include "base/number.h"
#include "base/str.h"
#include "tensor/dtype.h"

/* *whole: it is written without a point and an exponent. */
const char *literal_number(const char *text, bool *whole);

/* Returns the double, or if `single` the float, nearest to the number at [text, end). */
double literal_float(const char *text, const char *end, bool single);

/* Converts a whole number, which may be written as 5.0 or 5e0, to an integer type or a bool, as
 * tensor_set_int64 takes it. */
enum number_status literal_integer(enum dtype type, const char *text, size_t n, int64_t *value);

/* "1+2j", "2j", or a real number alone. */
const char *literal_complex(const char *text, bool *imaginary, float value[2]);

/* Prints n bytes as a quoted string. */
void literal_print_string(struct str *out, const char *text, size_t n);

/* Letters after a backslash, and the characters that they stand for. */
static const char literal_letters[] = "nrt\"\\", literal_escaped[] = "\n\r\t\"\\";
/* A quoted string; stores its bytes unless `out` is NULL. */
const char *literal_string(const char *text, char *out, size_t *n);

#endif
