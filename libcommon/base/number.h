/* SPDX-License-Identifier: Apache-2.0
 *
 * Decimal numbers as data files write them: sign, digits, point, exponent; "inf", "infinity" and
 * "nan" in any case. The whole text must be the number: no blanks around it. Independent of the
 * locale. Floats are correctly rounded (to nearest, ties to even) to either width, each directly
 * from the text. Thread-safe.
 */
#ifndef TF_BASE_NUMBER_H
#define TF_BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

enum number_status {
    NUMBER_OK,
    NUMBER_INVALID, /* not a number, or a fraction where an integer is expected */
    NUMBER_RANGE,   /* too large for the type (a float too small for it is 0 without error) */
};

enum number_status number_float64(const char *text, size_t n, double *value);
enum number_status number_float32(const char *text, size_t n, float *value);

/* Digits and a sign only: no point, no exponent. */
enum number_status number_int64(const char *text, size_t n, int64_t *value);
enum number_status number_uint64(const char *text, size_t n, uint64_t *value);

#endif
