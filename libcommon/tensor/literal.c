/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/literal.h"

#include <math.h>
#include <string.h>

#include "base/str.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *scan_digits(const char *p, struct literal_number *n, bool fraction)
{
    for (; is_digit(*p); p++) {
        uint64_t grown;
        if (__builtin_mul_overflow(n->digits, 10u, &grown) ||
            __builtin_add_overflow(grown, (uint64_t)(*p - '0'), &grown))
            n->exact = false;
        else
            n->digits = grown;
        n->exponent -= fraction;
    }
    return p;
}

static const char *scan_exponent(const char *p, struct literal_number *n)
{
    const char *start = p;
    if (*p != 'e' && *p != 'E')
        return p;
    bool negative = *++p == '-';
    p += *p == '-' || *p == '+';
    if (!is_digit(*p))
        return start;
    int value = 0;
    for (; is_digit(*p); p++)
        value = value < 100000 ? value * 10 + (*p - '0') : value;
    n->exponent += negative ? -value : value;
    n->whole = false;
    return p;
}

const char *literal_number(const char *p, struct literal_number *n)
{
    *n = (struct literal_number){.negative = *p == '-', .whole = true, .exact = true};
    p += *p == '-' || *p == '+';
    if (!strncmp(p, "nan", 3) || !strncmp(p, "inf", 3)) {
        n->special = *p == 'n' ? NAN : INFINITY;
        n->whole = false;
        return p + 3;
    }
    const char *start = p;
    p = scan_digits(p, n, false);
    size_t n_digits = (size_t)(p - start);
    if (*p == '.') {
        start = ++p;
        p = scan_digits(p, n, true);
        n_digits += (size_t)(p - start);
        n->whole = false;
    }
    return n_digits ? scan_exponent(p, n) : NULL;
}

static double slow_float(const char *text, const char *end, bool single)
{
    char copy[LITERAL_BYTES];
    size_t n = (size_t)(end - text);
    double value = NAN;
    float narrow = NAN;
    memcpy(copy, text, n);
    copy[n] = '\0';
    if (single)
        return str_to_float32(copy, &narrow) ? (double)narrow : (double)NAN;
    return str_to_float64(copy, &value) ? value : (double)NAN;
}

/* Exact for up to 15 digits and small powers of ten, which are exact doubles (Clinger 1990); all
 * other numbers are left to the C library. */
double literal_float(const struct literal_number *n, const char *text, const char *end, bool single)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (n->special != 0)
        return n->negative ? -n->special : n->special;
    if (!n->exact || n->digits > (uint64_t)1 << 53 || n->exponent < -22 || n->exponent > 22)
        return slow_float(text, end, single);
    double value = (double)n->digits;
    value = n->exponent < 0 ? value / powers[-n->exponent] : value * powers[n->exponent];
    if (single) {
        /* A double halfway between two floats may be a rounded value: convert the text directly. */
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        bool halfway = (bits & 0x1fffffff) == 0x10000000;
        if (halfway || (value != 0 && value < 0x1p-126))
            return slow_float(text, end, true);
    }
    return n->negative ? -value : value;
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses the escape after a backslash; NULL if it is none. */
static const char *scan_escape(const char *p, char *c)
{
    static const char letters[] = "nrt\"\\", values[] = "\n\r\t\"\\";
    const char *found = *p ? strchr(letters, *p) : NULL;
    if (found) {
        *c = values[found - letters];
        return p + 1;
    }
    int high = *p == 'x' ? hex_digit(p[1]) : -1;
    int low = high >= 0 ? hex_digit(p[2]) : -1;
    *c = (char)(high * 16 + low);
    return low >= 0 ? p + 3 : NULL;
}

const char *literal_string(const char *p, char *out, size_t *n)
{
    *n = 0;
    for (p++; *p != '"'; (*n)++) {
        char c = *p++;
        if (!c || c == '\n')
            return NULL;
        if (c == '\\' && !(p = scan_escape(p, &c)))
            return NULL;
        if (out)
            out[*n] = c;
    }
    return p + 1;
}

const char *literal_complex(const char *p, bool *imaginary, float value[2])
{
    struct literal_number n;
    const char *end = literal_number(p, &n), *second;
    *imaginary = false;
    value[0] = value[1] = 0;
    if (!end || end - p >= LITERAL_BYTES)
        return NULL;
    float first = (float)literal_float(&n, p, end, true);
    if (*end == 'j') {
        *imaginary = true;
        value[1] = first;
        return end + 1;
    }
    value[0] = first;
    if (*end != '+' && *end != '-')
        return end;
    second = end;
    end = literal_number(second, &n);
    if (!end || end - second >= LITERAL_BYTES || *end != 'j')
        return NULL;
    *imaginary = true;
    value[1] = (float)literal_float(&n, second, end, true);
    return end + 1;
}
