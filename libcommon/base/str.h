/* SPDX-License-Identifier: Apache-2.0
 *
 * Growable text, and the few helpers on C strings that several modules need. `data` is always
 * terminated after the first append; str_text returns "" for an empty one.
 */
#ifndef TF_BASE_STR_H
#define TF_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str {
    char *data;
    size_t n, capacity;
};

#define STR_INIT                                                                                   \
    {                                                                                              \
        0                                                                                          \
    }

void str_append(struct str *s, const char *text);
void str_append_bytes(struct str *s, const void *bytes, size_t n);
void str_append_char(struct str *s, char c);
char *str_extend(struct str *s, size_t n); /* by n bytes, which the caller sets */
void str_printf(struct str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *str_text(const struct str *s);
void str_clear(struct str *s); /* empties it but keeps its memory */
void str_release(struct str *s);

/* The shortest decimal that parses to the same value: "0.003", "1", "1e-08", "nan", "inf". */
void str_append_float32(struct str *s, float value);
void str_append_float64(struct str *s, double value);
/* Appends a text as one shell word, quoted if necessary. */
void str_append_quoted(struct str *s, const char *word);

/* Parse numbers: the whole text must be one; independent of the locale. */
bool str_to_int64(const char *text, int64_t *value);
bool str_to_float64(const char *text, double *value);
bool str_to_float32(const char *text, float *value);    /* rounded once */
bool str_to_bytes(const char *text, int64_t *bytes);    /* 64k, 1.5G: powers of 1024 */
bool str_to_seconds(const char *text, double *seconds); /* 30s, 2m, 1h, 250ms, 50us */
/* 5, or 5/1h: a number in all (*seconds: 0), or per time. */
bool str_to_budget(const char *text, int64_t *n, double *seconds);

/* Returns the length of the UTF-8 character at the start of the n bytes: 1 to 4, or 0: none. */
size_t str_utf8(const char *text, size_t n);

/* Returns false for a control character, which a terminal might obey, and for invalid UTF-8. */
bool str_is_printable(const char *text, size_t n);

/* Writes the n bytes as far as they fit, terminated, with \\xHH for each byte of a control
 * character or of invalid UTF-8: how names from outside are printed. Returns the length written. */
size_t str_escape(char *to, size_t room, const char *text, size_t n);
void str_append_escaped(struct str *s, const char *text);

bool str_starts(const char *text, const char *prefix);
bool str_ends(const char *text, const char *suffix);

/* Returns the one of `names` (NULL-terminated) that was most likely meant, or NULL. */
const char *str_nearest(const char *text, const char *const *names);
/* " (did you mean 'x'?)" or "": in a static buffer of the thread. */
const char *str_hint(const char *text, const char *const *names);

#endif
