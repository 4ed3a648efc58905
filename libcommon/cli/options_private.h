/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the option parser share; not installed, nobody else includes it.
 */
#ifndef TF_CLI_OPTIONS_PRIVATE_H
#define TF_CLI_OPTIONS_PRIVATE_H

#include "base/str.h"
#include "cli/options.h"

/* The rows that every table has without naming them: help, version, man. Ended by a NULL name. */
extern const struct option_row options_builtin[];

/* True for rows that take a value from the next argument when "=" is not there. */
bool option_needs_value(const struct option_row *row);

/* Writes one value through the row's target. `name` ("--threads", "TF_THREADS") is for the message;
 * `value` is NULL where none was given; `on` is false for "--no-name". Lists grow. ERR_USAGE. */
int option_set(const struct option_row *row, const char *name, const char *value, bool on,
               struct error *err);

enum option_source { OPTION_ABSENT, OPTION_ENVIRONMENT, OPTION_COMMAND_LINE };

/* Sets the rows that were not given on the command line from TF_NAME. ERR_USAGE. */
int options_from_environment(const struct option_table *table, enum option_source *given,
                             struct error *err);

/* An option of that source which the row's is not read beside, or which is not read beside it; or
 * NULL. */
const struct option_row *options_clash(const struct option_table *table,
                                       const enum option_source *given,
                                       const struct option_row *row, enum option_source source);

/* Checks that each option of the command line is read: by the verb, beside the options that it
 * needs, and not beside one that it clashes with. ERR_USAGE. */
int options_check_use(const struct option_table *table, const enum option_source *given,
                      const char *verb, struct error *err);

/* The next of a list of words, "save keep", and its length, n; NULL at the end. */
const char *option_word(const char **list, int *n);
/* Returns whether a list has a word. */
bool option_lists(const char *list, const char *name);

/* The verb of that name, else what the tool does without one; NULL. */
const struct option_verb *option_verb_find(const struct option_table *table, const char *name);
/* Prints the help of an option where those of all verbs are listed: "forget, prune: say what ...".
 * */
void option_describe(const struct option_table *table, const struct option_row *row,
                     struct str *out);
/* Returns whether a verb takes an option; NULL does. */
bool option_is_for(const struct option_table *table, const struct option_verb *verb,
                   const char *option);

/* "-o, --output FILE" in `text`, which is cut when too small. */
void option_synopsis(const struct option_row *row, char *text, size_t n);

#endif
