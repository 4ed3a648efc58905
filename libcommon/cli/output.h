/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that appears whole or not at all: written under a temporary name beside its final one,
 * synchronised and renamed. Used by tool.c for -o FILE; one a process, as a signal that ends the
 * process must find it. What exists and is not a regular file (a device, a FIFO) is written
 * directly.
 */
#ifndef TF_CLI_OUTPUT_H
#define TF_CLI_OUTPUT_H

#include "base/error.h"

/* Opens; *fd is the caller's to write and, on success of output_commit, is closed there. ERR_IO,
 * ERR_DENIED, ERR_DATA for a directory. From here until commit or discard SIGINT, SIGTERM and
 * SIGHUP remove the temporary file, unless the tool catches them itself. */
int output_open(const char *path, int *fd, struct error *err);

/* fsync, close, rename, fsync of the directory. On failure the temporary file is gone. */
int output_commit(struct error *err);

/* Closes and removes. Nothing happens when no output is open. */
void output_discard(void);

/* Removes the temporary file; may be called from a signal handler. */
void output_unlink(void);

#endif
