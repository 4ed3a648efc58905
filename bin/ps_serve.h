/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of the verb of tf-ps that is a shard: serve.
 */
#ifndef TF_BIN_PS_SERVE_H
#define TF_BIN_PS_SERVE_H

#include "cli/tool.h"

extern struct ps_serve_options {
    int64_t threads, keep;
    bool deterministic, exact, resume;
    const char *save, *save_every, *save_best, *run_name;
} ps_serving;

#endif
