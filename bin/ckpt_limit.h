/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of --max-runtime, wherever tf-ckpt is then: in a long read, or waiting for a lock, a
 * disk, or somebody at the other end of a pipe. A tool that looks between two steps of its work has
 * ended by itself before.
 */
#ifndef TF_BIN_CKPT_LIMIT_H
#define TF_BIN_CKPT_LIMIT_H

#include "base/error.h"

struct ckpt_limit {
    double seconds;
    const char *verb, *store; /* for the line, and for metrics */
    const char *metrics_path; /* NULL: nobody wants them */
};

/* Ends the process, from now on, with status 75 and a line when the time is over, its temporary
 * files removed, unless ckpt_limit_end comes first. The strings must stay. ERR_OS. */
int ckpt_limit_start(const struct ckpt_limit *limit, struct error *err);
void ckpt_limit_end(void);

#endif
