/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-data cut: extracts the records of some steps of a stream, to run a step again alone.
 */
#ifndef TF_BIN_DATA_CUT_H
#define TF_BIN_DATA_CUT_H

#include "cli/tool.h"

/* `list` is a list of ranges (ranges.h); `path` NULL or "-" is stdin. Steps are counted as tf-exec
 * counts them: by the records' numbers, continuing where one stream follows another. ERR_DATA if no
 * record is of such a step. */
int data_cut(struct tool *tool, const char *list, const char *path, struct error *err);

#endif
