/* SPDX-License-Identifier: Apache-2.0
 *
 * Small text files of words: one statement per line, words separated by blanks, comments from `#`
 * to the end of the line. For configurations and tables that people edit.
 */
#ifndef TF_BASE_WORDS_H
#define TF_BASE_WORDS_H

#include <stdbool.h>

#include "base/error.h"

#define WORDS_MAX 64                /* of a line */
#define WORDS_FILE_BYTES (64 << 20) /* of a file */

struct words {
    char *word[WORDS_MAX]; /* terminated; valid during the call */
    int n;                 /* at least 1 */
    int line;              /* from 1 */
};

/* Calls `take` for each line that has words, until one fails; its error is prefixed with
 * "FILE:LINE: ". ERR_NOINPUT if the file cannot be read, ERR_DATA if it is no text. */
int words_read(const char *path, int (*take)(void *context, struct words *words, struct error *err),
               void *context, struct error *err);

/* The same for a text in memory; `name` stands for the file in messages. */
int words_parse(const char *text, size_t n, const char *name,
                int (*take)(void *context, struct words *words, struct error *err), void *context,
                struct error *err);

/* ---- settings files: each line is a word, a blank and a text ---- */

struct setting {
    char *word, *text; /* terminated; valid during the call; the text may be "" */
    int line;          /* from 1: its first */
};

/* Calls `take` for each setting, as words_read does. A line that begins with a blank continues the
 * previous one, after a newline; empty lines and lines that begin with `#` are skipped. */
int settings_read(const char *path,
                  int (*take)(void *context, const struct setting *setting, struct error *err),
                  void *context, struct error *err);

/* A word that can be set, and where an object keeps its value. */
struct setting_row {
    const char *word;                            /* NULL ends a table */
    bool (*set)(void *target, const char *text); /* false: the text is no valid value */
    size_t at;                                   /* offset of the target in the object */
};

/* Sets the word's target by the table. The caller keeps the text, which must outlive the object if
 * the table stores it. `what` ("task") names the kind of object in the message. ERR_DATA. */
int setting_take(const struct setting_row *rows, const char *what, void *object,
                 const struct setting *setting, struct error *err);

/* Setters for tables of settings. */
bool setting_text(void *target, const char *text);    /* const char *: the text itself */
bool setting_flag(void *target, const char *text);    /* bool: true, whatever the text */
bool setting_count(void *target, const char *text);   /* int: 1 or more */
bool setting_seconds(void *target, const char *text); /* double: a time of more than 0 */

/* Splits "key=value" in place; returns the value. NULL for another form or an empty key. */
char *words_value(char *word);

#endif
