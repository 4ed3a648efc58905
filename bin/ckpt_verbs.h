/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs of tf-ckpt that need more than the store: files to write, or a job to ask. The others
 * are in checkpoint/command/command.h.
 */
#ifndef TF_BIN_CKPT_VERBS_H
#define TF_BIN_CKPT_VERBS_H

#include "checkpoint/command/command.h"
#include "cli/progress.h"
#include "cli/tool.h"

extern struct ckpt_job {
    const char *folder, *key_file;
} ckpt_job;

struct ckpt_work {
    struct tool *tool;
    struct command command;
    struct progress progress;
    double began, max_runtime; /* seconds; max_runtime 0: unlimited */
    struct arena arena;
};

typedef int ckpt_verb(struct ckpt_work *work, struct error *err);
ckpt_verb ckpt_save, ckpt_cat, ckpt_export, ckpt_salvage;

#endif
