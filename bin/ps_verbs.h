/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs of tf-ps that ask no shards. serve is one; the others work on a job's directory, --job:
 * init makes it for the tasks of a cluster file, end removes from it what only a running job has,
 * watch prints a line per event in the job.
 */
#ifndef TF_BIN_PS_VERBS_H
#define TF_BIN_PS_VERBS_H

#include "cli/tool.h"

struct client;
struct shard_view;

struct ps_call {
    struct tool *tool;
    char **operands;       /* after the verb */
    struct client *client; /* NULL: the verb asks no shards */
    const struct shard_view *view;
};

typedef int ps_verb_run(struct ps_call *call, struct error *err);
ps_verb_run ps_serve, ps_init, ps_end, ps_watch;

/* Warns if tf-run runs the job: tf-run starts stopped tasks again. */
void ps_warn_of_supervisor(const struct tool *tool);

#endif
