/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of variables as files, for tf-ps get and put.
 */
#ifndef TF_BIN_PS_VALUE_H
#define TF_BIN_PS_VALUE_H

#include "cli/tool.h"

/* Writes the value to the tool's output: a record, or a NumPy array if the name is one's. */
int ps_write_value(struct tool *tool, const char *name, const struct tensor *value,
                   struct error *err);

/* Reads the value of a .npy file, or of a stream's only tensor, or of the one of that name. The
 * caller releases *value, also after a failure. ERR_DATA when it cannot be told which one is meant.
 * */
int ps_read_value(struct tool *tool, const char *path, const char *name, struct tensor *value,
                  struct error *err);

#endif
