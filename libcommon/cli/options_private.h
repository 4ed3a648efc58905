/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the option parser; not installed, and private to them.
 */
#ifndef TF_CLI_OPTIONS_PRIVATE_H
#define TF_CLI_OPTIONS_PRIVATE_H

#include "base/str.h"
#include "cli/options.h"

/* The rows that every table has implicitly: help, version, man. Ended by a NULL name. */
extern const struct option_row options_builtin[];

enum option_source { OPTION_ABSENT, OPTION_ENVIRONMENT, OPTION_COMMAND_LINE };

/* Returns an option from that source that clashes with the row's, in either order; or NULL. */
const struct option_row *options_clash(const struct option_table *table,
                                       const enum option_source *given,
                                       const struct option_row *row, enum option_source source);

/* Checks that each option of the command line is used: the verb takes it, an option that it needs
 * is present, and none that it clashes with. ERR_USAGE. */
int options_check_use(const struct option_table *table, const enum option_source *given,
                      const char *verb, struct error *err);

/* Returns the next word of a list, "save keep", and its length n; NULL at the end. */
const char *option_word(const char **list, int *n);
/* Returns whether a list contains a word. */
bool option_lists(const char *list, const char *name);

/* Returns the verb of that name, else the one without a name; NULL: none. */
const struct option_verb *option_verb_find(const struct option_table *table, const char *name);
/* Prints an option's help for a list of all verbs' options: "forget, prune: say what ...". */
void option_describe(const struct option_table *table, const struct option_row *row,
                     struct str *out);
/* Returns whether a verb takes an option; verb NULL takes all. */
bool option_is_for(const struct option_table *table, const struct option_verb *verb,
                   const char *option);

/* Formats "-o, --output FILE" into `text`, cut if too small. */
void option_synopsis(const struct option_row *row, char *text, size_t n);

#endif
