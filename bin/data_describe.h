/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-data describe: prints what a table of text contains, as a table or as JSON, and the command
 * line that would feed it.
 */
#ifndef TF_BIN_DATA_DESCRIBE_H
#define TF_BIN_DATA_DESCRIBE_H

#include "cli/tool.h"
#include "data/csv_columns.h"

/* Describes a file of CSV or, if it begins with a brace, of JSON lines. */
int data_describe(struct tool *tool, const char *path, const struct csv_format *format,
                  bool as_json, struct error *err);

#endif
