/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the option parser share; not installed, nobody else includes it.
 */
#ifndef TF_CLI_OPTIONS_PRIVATE_H
#define TF_CLI_OPTIONS_PRIVATE_H

#include "cli/options.h"

/* The rows that every table has without naming them: help, version, man. Ended by a NULL name. */
extern const struct option_row options_builtin[];

/* True for rows that take a value from the next argument when "=" is not there. */
bool option_needs_value(const struct option_row *row);

/* Writes one value through the row's target. `name` ("--threads", "TF_THREADS") is for the message;
 * `value` is NULL where none was given; `on` is false for "--no-name". Lists grow. ERR_USAGE. */
int option_set(const struct option_row *row, const char *name, const char *value, bool on,
               struct error *err);

/* Sets the rows that were not given on the command line from TF_NAME. ERR_USAGE. */
int options_from_environment(const struct option_table *table, const bool *given,
                             struct error *err);

/* "-o, --output FILE" in `text`, which is cut when too small. */
void option_synopsis(const struct option_row *row, char *text, size_t n);

#endif
