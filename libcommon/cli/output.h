/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that appears whole or not at all: written under a temporary name beside its final one,
 * synchronised and renamed. A file that exists and is not regular (a device, a FIFO) is written
 * directly. At most OUTPUTS_MAX are open at once, as a signal that ends the process must find them.
 */
#ifndef TF_CLI_OUTPUT_H
#define TF_CLI_OUTPUT_H

#include "base/error.h"

#define OUTPUTS_MAX 4

struct output;

/* Opens; *fd is the caller's to write and is closed by commit or discard. ERR_IO, ERR_DENIED,
 * ERR_DATA for a directory. From here until then signals that end the process remove the temporary
 * file first, unless the tool catches them itself. */
int output_open(const char *path, struct output **output, int *fd, struct error *err);

/* fsync, close, rename, fsync of the directory. On failure the temporary file is gone. Nothing
 * happens when `output` is NULL. */
int output_commit(struct output *output, struct error *err);

/* Closes and removes. Nothing happens when `output` is NULL. */
void output_discard(struct output *output);

/* Removes the temporary files of all that are open; may be called from a signal handler. */
void output_unlink_all(void);

#endif
