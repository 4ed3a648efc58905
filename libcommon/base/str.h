/* SPDX-License-Identifier: Apache-2.0
 *
 * Growable text, and the few helpers on C strings that several modules need. `data` is always
 * terminated once anything was appended; str_text gives "" for an empty one.
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
void str_clear(struct str *s); /* empty, keeps its memory */
void str_release(struct str *s);

/* The shortest decimal that reads back as the same value: "0.003", "1", "1e-08", "nan", "inf". */
void str_append_float32(struct str *s, float value);
void str_append_float64(struct str *s, double value);
/* One word of a shell's; plain ones stay as they are. */
void str_append_quoted(struct str *s, const char *word);

/* Numbers, whole text only, independent of the locale. */
bool str_to_int64(const char *text, int64_t *value);
bool str_to_float64(const char *text, double *value);
bool str_to_float32(const char *text, float *value);    /* rounded once */
bool str_to_bytes(const char *text, int64_t *bytes);    /* 64k, 1.5G: powers of 1024 */
bool str_to_seconds(const char *text, double *seconds); /* 30s, 2m, 1h, 250ms, 50us */
/* 5, or 5/1h: so many, in all (*seconds: 0) or within a time. */
bool str_to_budget(const char *text, int64_t *n, double *seconds);

/* Bytes of the UTF-8 character at the start of the n bytes: 1 to 4, or 0 if there is none. */
size_t str_utf8(const char *text, size_t n);

/* False if there is a control character in it, which a terminal might obey, or no UTF-8. */
bool str_is_printable(const char *text, size_t n);

/* Writes as much of the n bytes as fits, terminated, with \\xHH for each byte of a control
 * character or of what is no UTF-8: how a name from outside is printed. Returns how long it is. */
size_t str_escape(char *to, size_t room, const char *text, size_t n);
void str_append_escaped(struct str *s, const char *text);

bool str_starts(const char *text, const char *prefix);
bool str_ends(const char *text, const char *suffix);

/* The name among `names` (NULL-terminated) that was most likely meant, or NULL: for "did you mean".
 */
const char *str_nearest(const char *text, const char *const *names);
/* " (did you mean 'x'?)" or "": in a static buffer of the thread. */
const char *str_hint(const char *text, const char *const *names);

#endif
