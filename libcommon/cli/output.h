/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that appears whole or not at all: written under a temporary name beside its final one,
 * synchronised and renamed. An existing file that is not regular (a device, a FIFO) is written
 * directly. At most OUTPUTS_MAX are open at once, so that handlers of fatal signals can find them.
 */
#ifndef TF_CLI_OUTPUT_H
#define TF_CLI_OUTPUT_H

#include <stdio.h>

#include "base/error.h"

#define OUTPUTS_MAX 4

struct output;

/* Opens the file; the caller writes to *fd, which commit or discard closes. ERR_IO, ERR_DENIED,
 * ERR_DATA for a directory. Until then fatal signals remove the temporary file first, unless the
 * tool handles them itself. */
int output_open(const char *path, struct output **output, int *fd, struct error *err);

/* The same for a stream, which commit or discard closes. The path must outlive the output. */
int output_open_stream(const char *path, struct output **output, FILE **stream, struct error *err);

/* fsync, close, rename, fsync of the directory. On failure the temporary file is removed. Does
 * nothing if `output` is NULL. ERR_IO, also if a write to the stream has failed. */
int output_commit(struct output *output, struct error *err);

/* Closes and removes the file. Does nothing if `output` is NULL. */
void output_discard(struct output *output);

/* Closes a stream and checks that everything ever written to it arrived. A signal ends a write that
 * waits for a reader: ERR_CANCELLED. */
int output_close_stream(FILE *stream, const char *name, struct error *err);

/* Removes the temporary files of all open outputs; may be called from a signal handler. */
void output_unlink_all(void);

/* The same, and then ends the process by the signal. */
void output_end_by(int number);

#endif
