/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/cluster_options.h"

#include "cli/parent_pipe.h"
#include "ops/ops.h"

#define PARENT_PIPE_GRACE 10 /* seconds to end in */
#define START_GRACE 1        /* the same before it serves, when nobody relies on it yet */

struct cluster_options cluster_options = {.parent_pipe = -1};

static void cluster_waiting(void *context, const char *whom, const char *text)
{
    char line[512];
    (void)whom;
    snprintf(line, sizeof line, "%s: %s", cluster_options.task, text);
    tool_say_waiting(context, line);
}

static void cluster_tell(void *context, const char *text)
{
    tool_say(context, "%s: %s", cluster_options.task, text);
}

struct member_options cluster_member(struct tool *tool)
{
    return (struct member_options){.cluster_path = cluster_options.path,
                                   .job_folder = cluster_options.job,
                                   .task = cluster_options.task,
                                   .key_file = cluster_options.key_file,
                                   .producer = tool->table->tool,
                                   .no_key = cluster_options.no_key,
                                   .lease = cluster_options.lease,
                                   .timeout = cluster_options.timeout,
                                   .news = {cluster_waiting, cluster_tell, tool},
                                   .given_up = tool_is_asked};
}

static void client_waiting(void *context, const char *whom, const char *text)
{
    (void)whom;
    tool_say_waiting(context, text);
}

struct member_options cluster_client(struct tool *tool)
{
    struct member_options options = cluster_member(tool);
    options.news.waiting = client_waiting;
    return options;
}

void cluster_ready(void *tool, const char *task, const char *address)
{
    tool_end_late(false);
    tool_say(tool, "%s: ready on %s", task, address);
}

static atomic_bool cancelled;

const atomic_bool *cluster_cancelled(void)
{
    return &cancelled;
}

int cluster_catch_signals(struct error *err)
{
    tool_catch_signals();
    tool_end_late(true);
    return tool_cancel_after(START_GRACE, &cancelled, err);
}

struct serve_options cluster_serving(struct tool *tool, const struct device_options *device)
{
    return (struct serve_options){.member = cluster_member(tool),
                                  .registry = ops_registry(),
                                  .kernels = ops_kernels(),
                                  .device = *device,
                                  .stop_fd = tool_stop_fd(),
                                  .ready = cluster_ready,
                                  .context = tool};
}

int cluster_hold_parent_pipe(struct error *err)
{
    return cluster_options.parent_pipe < 0
               ? 0
               : parent_pipe_hold((int)cluster_options.parent_pipe, PARENT_PIPE_GRACE, err);
}
