/* SPDX-License-Identifier: Apache-2.0
 *
 * Enforces --max-runtime wherever tf-ckpt is when the time is over: in a long read, or waiting for
 * a lock, a disk, or the other end of a pipe. Verbs that check the time between two steps of their
 * work end by themselves before.
 */
#ifndef TF_BIN_CKPT_LIMIT_H
#define TF_BIN_CKPT_LIMIT_H

#include "base/error.h"

struct ckpt_limit {
    double seconds;
    const char *verb, *store; /* for the message, and for metrics */
    const char *metrics_path; /* NULL: none are written */
};

/* Starts a thread that, when the time is over, removes temporary files, prints a line and ends the
 * process with status 75, unless ckpt_limit_end is called first. The strings must stay. ERR_OS. */
int ckpt_limit_start(const struct ckpt_limit *limit, struct error *err);
void ckpt_limit_end(void);

#endif
