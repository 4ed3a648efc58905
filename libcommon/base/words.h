/* SPDX-License-Identifier: Apache-2.0
 *
 * Small text files of words: a statement a line, words with blanks between them, `#` and what
 * follows is a comment. Configurations and tables that people edit.
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

/* Calls `take` for each line that has words, until one fails; its error gets "FILE:LINE: " in
 * front. ERR_NOINPUT when the file cannot be read, ERR_DATA when it is no text. */
int words_read(const char *path, int (*take)(void *context, struct words *words, struct error *err),
               void *context, struct error *err);

/* The same of a text; `name` stands for the file in messages. */
int words_parse(const char *text, size_t n, const char *name,
                int (*take)(void *context, struct words *words, struct error *err), void *context,
                struct error *err);

/* ---- files whose lines are a word and a text, which is all that follows behind a blank ---- */

struct setting {
    char *word, *text; /* terminated; valid during the call; the text may be "" */
    int line;          /* from 1: its first */
};

/* Calls `take` for each of them, as words_read does. A line that begins with a blank goes on with
 * the one before, behind a newline; empty lines and those that begin with `#` are passed over. */
int settings_read(const char *path,
                  int (*take)(void *context, const struct setting *setting, struct error *err),
                  void *context, struct error *err);

/* A word that can be set, and where in an object it is kept. */
struct setting_row {
    const char *word;                            /* NULL ends a table */
    bool (*set)(void *target, const char *text); /* false: not to this text */
    size_t at;                                   /* of the target, in the object */
};

/* Sets what a table says of the word. The text stays the caller's, and must last as long as the
 * object if it is kept. `what` the words are of ("task") is for the message. ERR_DATA. */
int setting_take(const struct setting_row *rows, const char *what, void *object,
                 const struct setting *setting, struct error *err);

/* Functions for tables of settings. */
bool setting_text(void *target, const char *text);    /* const char *: the text itself */
bool setting_flag(void *target, const char *text);    /* bool: true, whatever the text */
bool setting_count(void *target, const char *text);   /* int: 1 or more */
bool setting_seconds(void *target, const char *text); /* double: a time of more than 0 */

/* Splits "key=value" in place. NULL when the word is no such pair or the key is empty. */
char *words_value(char *word);

#endif
