/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-data cut: the records of some steps of a stream, so that a step can be run again alone.
 */
#ifndef TF_BIN_DATA_CUT_H
#define TF_BIN_DATA_CUT_H

#include "cli/tool.h"

/* `list` is as of ranges.h, `path` NULL or "-" is stdin. Steps count as tf-exec counts them: by the
 * numbers of the records, and on where one stream stands behind another. ERR_DATA if no record is
 * of such a step. */
int data_cut(struct tool *tool, const char *list, const char *path, struct error *err);

#endif
