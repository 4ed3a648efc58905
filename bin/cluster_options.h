/* SPDX-License-Identifier: Apache-2.0
 *
 * The options that make a program a task of a cluster, for every program that can be one; their
 * rows are in bin/cluster_rows.def. A template: it defines what it declares, for the one file of a
 * program.
 */
#ifndef TF_BIN_CLUSTER_OPTIONS_H
#define TF_BIN_CLUSTER_OPTIONS_H

#include "cli/lifeline.h"
#include "cli/tool.h"
#include "ops/ops.h"
#include "transport/serve.h"

#define LIFELINE_GRACE 10 /* seconds to end in */

static const char *cluster_path, *cluster_task, *cluster_job, *cluster_key_file;
static bool cluster_no_key;
static double cluster_timeout, cluster_lease;
static int64_t cluster_lifeline = -1;

static inline void cluster_waiting(void *context, const char *text)
{
    const struct tool *tool = context;
    char line[512];
    snprintf(line, sizeof line, "%s: %s", cluster_task, text);
    tool_say_waiting(tool, line);
}

static inline bool cluster_given_up(void *context)
{
    (void)context;
    return tool_signal() != 0;
}

static inline struct member_options cluster_member(struct tool *tool)
{
    return (struct member_options){.cluster_path = cluster_path,
                                   .job_folder = cluster_job,
                                   .task = cluster_task,
                                   .key_file = cluster_key_file,
                                   .producer = tool->table->tool,
                                   .no_key = cluster_no_key,
                                   .lease = cluster_lease,
                                   .timeout = cluster_timeout,
                                   .waiting = cluster_waiting,
                                   .given_up = cluster_given_up,
                                   .context = tool};
}

static inline void cluster_say_ready(void *context, const char *task, const char *address)
{
    tool_say(context, "%s: ready on %s", task, address);
}

/* For a program that serves, after tool_catch_signals. */
static inline struct serve_options cluster_serving(struct tool *tool, int threads,
                                                   bool deterministic)
{
    return (struct serve_options){.member = cluster_member(tool),
                                  .registry = ops_registry(),
                                  .kernels = ops_kernels(),
                                  .threads = threads,
                                  .deterministic = deterministic,
                                  .stop_fd = tool_stop_fd(),
                                  .ready = cluster_say_ready,
                                  .context = tool};
}

/* Where --lifeline was given. */
static inline int cluster_hold_lifeline(struct error *err)
{
    return cluster_lifeline < 0 ? 0 : lifeline_hold((int)cluster_lifeline, LIFELINE_GRACE, err);
}

#endif
