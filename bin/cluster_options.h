/* SPDX-License-Identifier: Apache-2.0
 *
 * The options that make a program a task of a cluster, for every program that can be one; their
 * rows are in bin/cluster_rows.def.
 */
#ifndef TF_BIN_CLUSTER_OPTIONS_H
#define TF_BIN_CLUSTER_OPTIONS_H

#include "cli/tool.h"
#include "ps/client.h"
#include "transport/session/serve.h"

extern struct cluster_options {
    const char *path, *task, *job, *key_file;
    bool no_key;
    double timeout, lease; /* seconds; 0: the default that the option's help states */
    int64_t parent_pipe;   /* a descriptor; -1: none */
} cluster_options;

struct member_options cluster_member(struct tool *tool);
/* Of a program that asks shards: all of them, or the one of --task. */
struct member_options cluster_client(struct tool *tool);

/* For a program that serves. Until the program is ready, a signal ends it soon, even while it reads
 * the state that it resumes from; once ready, it ends in good order. */
int cluster_catch_signals(struct error *err);
/* Returns the flag that ends waits; it is set soon after such a signal. */
const atomic_bool *cluster_cancelled(void);
struct serve_options cluster_serving(struct tool *tool, const struct device_options *device);
/* Reports that the task is ready: the minimum that serve_options.ready must do. */
void cluster_ready(void *tool, const char *task, const char *address);

/* Holds the parent-death pipe, if --parent-pipe was given. */
int cluster_hold_parent_pipe(struct error *err);

#endif
