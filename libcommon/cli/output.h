/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that appears whole or not at all: written under a temporary name beside its final one,
 * synchronised and renamed. An existing file that is not regular (a device, a FIFO) is written
 * directly. At most OUTPUTS_MAX are open at once, so that handlers of fatal signals can find them.
 */
#ifndef TF_CLI_OUTPUT_H
#define TF_CLI_OUTPUT_H

#include "base/error.h"

#define OUTPUTS_MAX 4

struct output;

/* Opens the file; the caller writes to *fd, which commit or discard closes. ERR_IO, ERR_DENIED,
 * ERR_DATA for a directory. Until then fatal signals remove the temporary file first, unless the
 * tool handles them itself. */
int output_open(const char *path, struct output **output, int *fd, struct error *err);

/* fsync, close, rename, fsync of the directory. On failure the temporary file is removed. Does
 * nothing if `output` is NULL. */
int output_commit(struct output *output, struct error *err);

/* Closes and removes the file. Does nothing if `output` is NULL. */
void output_discard(struct output *output);

/* Removes the temporary files of all open outputs; may be called from a signal handler. */
void output_unlink_all(void);

/* The same, and then ends the process by the signal. */
void output_end_by(int number);

#endif
