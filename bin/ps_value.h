/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes values of variables as files, for tf-ps get and put, and tf-ckpt cat.
 */
#ifndef TF_BIN_PS_VALUE_H
#define TF_BIN_PS_VALUE_H

#include "cli/tool.h"

/* Writes the value to the tool's output: a record, also if its writer is open already, or an array
 * if its name ends in .npy. */
int ps_write_value(struct tool *tool, const char *name, const struct tensor *value,
                   struct error *err);

/* Reads the value from a .npy file, or from a stream: its only tensor, or the one of that name. The
 * caller releases *value, also after a failure. ERR_DATA if it is ambiguous which one is meant. */
int ps_read_value(struct tool *tool, const char *path, const char *name, struct tensor *value,
                  struct error *err);

#endif
