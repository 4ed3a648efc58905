/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/literal.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "tensor/tensor.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *p)
{
    while (is_digit(*p))
        p++;
    return p;
}

const char *literal_number(const char *p, bool *whole)
{
    p += *p == '-' || *p == '+';
    *whole = false;
    if (!strncmp(p, "nan", 3) || !strncmp(p, "inf", 3))
        return p + 3;
    const char *end = skip_digits(p);
    *whole = *end != '.';
    bool has_digits = end > p || is_digit(end[!*whole]);
    if (!*whole)
        end = skip_digits(end + 1);
    if (!has_digits || (*end | 0x20) != 'e')
        return has_digits ? end : NULL;
    const char *exponent = end + 1 + (end[1] == '-' || end[1] == '+');
    if (!is_digit(*exponent))
        return end;
    *whole = false;
    return skip_digits(exponent);
}

double literal_float(const char *text, const char *end, bool single)
{
    double value = NAN;
    float narrow = NAN;
    if (!single)
        number_float64(text, (size_t)(end - text), &value);
    else
        number_float32(text, (size_t)(end - text), &narrow);
    return single ? (double)narrow : value;
}

enum number_status literal_integer(enum dtype type, const char *text, size_t n, int64_t *value)
{
    int64_t item;
    double wide;
    struct tensor one = {.type = type, .data = &item};
    enum number_status status = number_int64(text, n, value);
    if (status == NUMBER_INVALID) {
        if (number_float64(text, n, &wide) || wide != trunc(wide) || isinf(wide))
            return NUMBER_INVALID;
        status = wide >= -0x1p63 && wide < 0x1p63 ? NUMBER_OK : NUMBER_RANGE;
        *value = status ? 0 : (int64_t)wide;
    }
    if (status == NUMBER_RANGE)
        return type == UINT64 && !number_uint64(text, n, (uint64_t *)value) ? NUMBER_OK
                                                                            : NUMBER_RANGE;
    tensor_set_int64(&one, 0, *value);
    bool fits = tensor_get_int64(&one, 0) == *value && (type != UINT64 || *value >= 0);
    return fits ? NUMBER_OK : NUMBER_RANGE;
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses the escape after a backslash. A character that begins none stands for itself. */
static const char *scan_escape(const char *p, char *c)
{
    const char *found = *p ? strchr(literal_letters, *p) : NULL;
    if (found) {
        *c = literal_escaped[found - literal_letters];
        return p + 1;
    }
    int high = *p == 'x' ? hex_digit(p[1]) : -1;
    int low = high >= 0 ? hex_digit(p[2]) : -1;
    *c = low >= 0 ? (char)(high * 16 + low) : *p;
    return p + (low >= 0 ? 3 : 1);
}

const char *literal_string(const char *p, char *out, size_t *n)
{
    *n = 0;
    for (p++; *p != '"'; (*n)++) {
        char c = *p++;
        if (!c || c == '\n')
            return NULL;
        if (c == '\\' && *p && *p != '\n')
            p = scan_escape(p, &c);
        if (out)
            out[*n] = c;
    }
    return p + 1;
}

const char *literal_complex(const char *p, bool *imaginary, float value[2])
{
    bool whole;
    const char *end = literal_number(p, &whole), *second;
    *imaginary = end && *end == 'j';
    value[0] = value[1] = 0;
    if (!end)
        return NULL;
    value[*imaginary] = (float)literal_float(p, end, true);
    if (*imaginary)
        return end + 1;
    if (*end != '+' && *end != '-')
        return end;
    second = end;
    end = literal_number(second, &whole);
    if (!end || *end != 'j')
        return NULL;
    *imaginary = true;
    value[1] = (float)literal_float(second, end, true);
    return end + 1;
}
