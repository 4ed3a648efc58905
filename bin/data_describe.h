/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-data describe: what is in a table of text, as a table or as JSON, and the command line that
 * would feed it.
 */
#ifndef TF_BIN_DATA_DESCRIBE_H
#define TF_BIN_DATA_DESCRIBE_H

#include "cli/tool.h"
#include "data/csv_columns.h"

/* CSV, or JSON lines where the file begins with a brace. */
int data_describe(struct tool *tool, const char *path, const struct csv_format *format,
                  bool as_json, struct error *err);

#endif
