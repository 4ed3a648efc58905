/* SPDX-License-Identifier: Apache-2.0
 *
 * A lifeline: a pipe whose other end a parent holds as long as it wants its children to live. When
 * the parent ends, however it does, the pipe does, too.
 */
#ifndef TF_CLI_LIFELINE_H
#define TF_CLI_LIFELINE_H

#include <stdbool.h>

#include "base/error.h"

/* At the end of the descriptor the process gets a SIGTERM, and a SIGKILL if it still lives `grace`
 * seconds later. Bytes written to it mean nothing. ERR_USAGE: no open descriptor; ERR_OS. */
int lifeline_hold(int fd, double grace, struct error *err);

/* Returns whether it has ended: then all who hold it are ending, not this process alone.
 * Thread-safe. */
bool lifeline_has_ended(void);

#endif
