/* SPDX-License-Identifier: Apache-2.0
 *
 * A parent-death pipe: a parent holds its other end as long as its children shall live. When the
 * parent ends, for whatever reason, the pipe is closed.
 */
#ifndef TF_CLI_PARENT_PIPE_H
#define TF_CLI_PARENT_PIPE_H

#include <stdbool.h>

#include "base/error.h"

/* At the descriptor's end the process gets SIGTERM, and SIGKILL if it still lives `grace` seconds
 * later. Bytes written to the pipe are ignored. ERR_USAGE: not an open descriptor; ERR_OS. */
int parent_pipe_hold(int fd, double grace, struct error *err);

/* Returns whether the pipe was closed: then all processes that hold it are ending, not only this
 * one. Thread-safe. */
bool parent_pipe_has_ended(void);

#endif
