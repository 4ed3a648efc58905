/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

static void reserve(struct str *s, size_t extra)
{
    if (s->n + extra + 1 <= s->capacity)
        return;
    s->capacity = s->capacity * 2 > s->n + extra + 1 ? s->capacity * 2 : s->n + extra + 32;
    s->data = mem_realloc(s->data, s->capacity);
}

char *str_extend(struct str *s, size_t n)
{
    reserve(s, n);
    char *more = s->data + s->n;
    s->n += n;
    s->data[s->n] = '\0';
    return more;
}

void str_append_bytes(struct str *s, const void *bytes, size_t n)
{
    char *more = str_extend(s, n);
    if (n)
        memcpy(more, bytes, n);
}

void str_append(struct str *s, const char *text)
{
    str_append_bytes(s, text, strlen(text));
}

void str_append_char(struct str *s, char c)
{
    str_append_bytes(s, &c, 1);
}

void str_printf(struct str *s, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) /* longer than an int can count */
        mem_exhausted(SIZE_MAX);
    reserve(s, (size_t)n);
    vsnprintf(s->data + s->n, (size_t)n + 1, format, again);
    va_end(again);
    s->n += (size_t)n;
}

const char *str_text(const struct str *s)
{
    return s->data ? s->data : "";
}

void str_clear(struct str *s)
{
    s->n = 0;
    if (s->data)
        s->data[0] = '\0';
}

void str_release(struct str *s)
{
    mem_free(s->data);
    *s = (struct str)STR_INIT;
}

/* The C locale, for numbers whatever the user's locale is. Never freed: it lives as long as the
 * process. */
static locale_t c_locale;

static void make_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static locale_t get_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_locale);
    return c_locale;
}

/* %g drops trailing zeros, so the search may start with as many digits as every value of the type
 * has; subnormal values have fewer. */
static void append_shortest(struct str *s, double value, bool single)
{
    int digits = fabs(value) < (single ? FLT_MIN : DBL_MIN) ? 1 : FLT_DIG;
    int most = single ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;
    char text[40];
    locale_t old = uselocale(get_locale());
    do
        snprintf(text, sizeof text, "%.*g", digits, value);
    while (isfinite(value) && ++digits <= most &&
           (single ? strtof(text, NULL) : strtod(text, NULL)) != value);
    uselocale(old);
    str_append(s, isfinite(value) ? text : isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

void str_append_float32(struct str *s, float value)
{
    append_shortest(s, value, true);
}

void str_append_float64(struct str *s, double value)
{
    append_shortest(s, value, false);
}

void str_append_quoted(struct str *s, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "%+,-./:=@_^";
    if (*word && !word[strspn(word, plain)]) {
        str_append(s, word);
        return;
    }
    str_append_char(s, '\'');
    for (; *word; word++)
        if (*word == '\'')
            str_append(s, "'\\''");
        else
            str_append_char(s, *word);
    str_append_char(s, '\'');
}

bool str_to_int64(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end || isspace((unsigned char)text[0]))
        return false;
    *value = v;
    return true;
}

bool str_to_float64(const char *text, double *value)
{
    char *end;
    double v = strtod_l(text, &end, get_locale());
    if (end == text || *end || isspace((unsigned char)text[0]))
        return false;
    *value = v;
    return true;
}

bool str_to_float32(const char *text, float *value)
{
    char *end;
    float v = strtof_l(text, &end, get_locale());
    if (end == text || *end || isspace((unsigned char)text[0]))
        return false;
    *value = v;
    return true;
}

/* Parses a number followed by one of `units`, whose factors are in `factors`; "" is a unit, too. */
static bool scaled(const char *text, const char *const *units, const double *factors, double *value)
{
    char *end;
    double v = strtod_l(text, &end, get_locale());
    if (end == text || isspace((unsigned char)text[0]) || !isfinite(v))
        return false;
    for (size_t i = 0; units[i]; i++) {
        if (!strcmp(end, units[i])) {
            *value = v * factors[i];
            return true;
        }
    }
    return false;
}

bool str_to_bytes(const char *text, int64_t *bytes)
{
    static const char *const units[] = {"", "k", "K", "m", "M", "g", "G", "t", "T", NULL};
    static const double factors[] = {1,      0x1p10, 0x1p10, 0x1p20, 0x1p20,
                                     0x1p30, 0x1p30, 0x1p40, 0x1p40};
    double v;
    if (!scaled(text, units, factors, &v) || v < 0 || v >= 0x1p63)
        return false;
    *bytes = (int64_t)v;
    return true;
}

#define SECONDS_MAX 1e9 /* such a time can be added to that of any clock */

bool str_to_seconds(const char *text, double *seconds)
{
    static const char *const units[] = {"", "s", "ms", "us", "m", "h", "d", NULL};
    static const double factors[] = {1, 1, 1e-3, 1e-6, 60, 3600, 86400};
    return scaled(text, units, factors, seconds) && *seconds >= 0 && *seconds <= SECONDS_MAX;
}

bool str_to_budget(const char *text, int64_t *n, double *seconds)
{
    char count[32];
    size_t digits = strcspn(text, "/");
    snprintf(count, sizeof count, "%.*s", (int)digits, text);
    *seconds = 0;
    return digits < sizeof count && str_to_int64(count, n) && *n >= 0 &&
           (!text[digits] || str_to_seconds(text + digits + 1, seconds));
}

size_t str_utf8(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    if (!n || *s < 0x80)
        return n > 0;
    size_t length = *s >= 0xf0 ? 4 : *s >= 0xe0 ? 3 : 2;
    if (*s < 0xc2 || *s > 0xf4 || length > n)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (*s == 0xe0 && s[1] < 0xa0) || (*s == 0xf0 && s[1] < 0x90);
    bool surrogate = *s == 0xed && s[1] >= 0xa0;
    bool beyond = *s == 0xf4 && s[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : length;
}

/* Returns the length of the first character if it is printable, else 0. */
static size_t printable(const char *text, size_t n)
{
    unsigned char c = (unsigned char)*text;
    size_t length = str_utf8(text, n);
    bool control = c < ' ' || c == 0x7f || (c == 0xc2 && length && (unsigned char)text[1] < 0xa0);
    return control ? 0 : length;
}

bool str_is_printable(const char *text, size_t n)
{
    for (size_t i = 0, length; i < n; i += length)
        if (!(length = printable(text + i, n - i)))
            return false;
    return true;
}

size_t str_escape(char *to, size_t room, const char *text, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    size_t done = 0;
    for (size_t i = 0; i < n;) {
        size_t length = printable(text + i, n - i);
        unsigned char c = (unsigned char)text[i];
        const char escape[] = {'\\', 'x', digits[c >> 4], digits[c & 15]};
        const char *from = length ? text + i : escape;
        size_t bytes = length ? length : sizeof escape;
        if (done + bytes >= room)
            break;
        memcpy(to + done, from, bytes);
        done += bytes;
        i += length ? length : 1;
    }
    to[done] = '\0';
    return done;
}

void str_append_escaped(struct str *s, const char *text)
{
    size_t n = strlen(text), before = s->n;
    str_extend(s, 4 * n + 1);
    s->n = before + str_escape(s->data + before, 4 * n + 1, text, n);
}

bool str_starts(const char *text, const char *prefix)
{
    return !strncmp(text, prefix, strlen(prefix));
}

bool str_ends(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);
    return n >= m && !strcmp(text + n - m, suffix);
}

/* Edit distance, ignoring case, in which a swap of two neighbours counts once; texts are cut to 64
 * characters. */
static int distance(const char *a, const char *b)
{
    int rows[3][65];
    int n = (int)strnlen(a, 64), m = (int)strnlen(b, 64);
    int *before = rows[0], *last = rows[1], *row = rows[2];
    for (int j = 0; j <= m; j++)
        row[j] = j;
    for (int i = 1; i <= n; i++) {
        int *oldest = before;
        before = last;
        last = row;
        row = oldest;
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = last[j - 1] + (strncasecmp(a + i - 1, b + j - 1, 1) != 0);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            bool swapped = i > 1 && j > 1 && !strncasecmp(a + i - 1, b + j - 2, 1) &&
                           !strncasecmp(a + i - 2, b + j - 1, 1);
            row[j] = swapped && before[j - 2] + 1 < best ? before[j - 2] + 1 : best;
        }
    }
    return row[m];
}

const char *str_nearest(const char *text, const char *const *names)
{
    const char *best = NULL;
    int n = (int)strnlen(text, 64);
    int limit = n < 2 ? 0 : (n + 2) / 3; /* more than a third wrong: another name was meant */
    int least = limit + 2; /* limit + 1 is the distance of a name that was cut, or went on */
    for (; *names; names++) {
        size_t length = strlen(*names), common = length < (size_t)n ? length : (size_t)n;
        bool is_cut = common > 2 && 2 * common >= (size_t)n && !strncasecmp(text, *names, common);
        int d = distance(text, *names);
        if (d > limit)
            d = limit + (is_cut ? 1 : 2);
        bool is_nearer = d < least || (d == least && best && best[0] != text[0] &&
                                       (*names)[0] == text[0]); /* a first letter is seldom wrong */
        if (is_nearer) {
            least = d;
            best = *names;
        }
    }
    return best;
}

const char *str_hint(const char *text, const char *const *names)
{
    static _Thread_local char hint[128];
    const char *nearest = str_nearest(text, names);
    snprintf(hint, sizeof hint, " (did you mean '%s'?)", nearest ? nearest : "");
    return nearest ? hint : "";
}
