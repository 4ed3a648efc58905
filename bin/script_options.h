/* SPDX-License-Identifier: Apache-2.0
 *
 * For tools that are scripts: the program that parses their command line, as every tool does,
 * writes what it found to descriptor 3 as assignments of the shell, which the script evaluates.
 * Nothing is written there after --help and its like, so that a script which reads nothing calls it
 * again.
 */
#ifndef TF_BIN_SCRIPT_OPTIONS_H
#define TF_BIN_SCRIPT_OPTIONS_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "cli/options.h"

#define SCRIPT_FD 3
#define SCRIPT_UNSET INT64_MIN /* the value of a number that was not given: an empty text */

/* opt_save_every='30s' for the option --save-every, and so on for each of `rows`: 1 or empty for a
 * flag, seconds as 30s, a list with commas. */
void script_assign_options(struct str *out, const struct option_row *rows);
/* NAME='text', quoted; NULL is the empty text. */
void script_assign(struct str *out, const char *name, const char *text);
/* set -- with the n words. */
void script_assign_words(struct str *out, char *const *words, int n);
/* Writes all to descriptor 3. ERR_IO. */
int script_write(const struct str *out, struct error *err);

#endif
