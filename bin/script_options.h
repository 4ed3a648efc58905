/* SPDX-License-Identifier: Apache-2.0
 *
 * For tools that are shell scripts: a program parses the command line, as every tool does, and
 * writes the result to descriptor 3 as shell assignments, which the script evaluates. For --help
 * and the like it writes nothing there; a script that reads nothing calls the program again.
 */
#ifndef TF_BIN_SCRIPT_OPTIONS_H
#define TF_BIN_SCRIPT_OPTIONS_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "cli/options.h"

#define SCRIPT_FD 3
#define SCRIPT_UNSET INT64_MIN /* a number that was not given; assigned as an empty text */

/* Appends an assignment for each of `rows`, such as opt_save_every='30s' for --save-every: 1 or
 * empty for a flag, seconds as 30s, a list with commas. */
void script_assign_options(struct str *out, const struct option_row *rows);
/* Appends NAME='text', quoted; NULL is the empty text. */
void script_assign(struct str *out, const char *name, const char *text);
/* Appends `set --` with the n words. */
void script_assign_words(struct str *out, char *const *words, int n);
/* Writes `out` to descriptor 3, and releases it. ERR_IO. */
int script_write(struct str *out, struct error *err);

#endif
