/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/ps_verbs.h"

#include <stdlib.h>
#include <unistd.h>

#include "bin/cluster_options.h"
#include "bin/watch_line.h"
#include "cli/progress.h"
#include "ps/watch.h"
#include "supervise/job_state.h"
#include "transport/job/cluster_config.h"

static int check_job(struct error *err)
{
    return cluster_options.job ? 0 : error_set(err, ERR_USAGE, "which job? --job DIR");
}

int ps_init(struct ps_call *call, struct error *err)
{
    const char *config = getenv("TF_CONFIG");
    (void)call;
    if (check_job(err))
        return err->code;
    if (cluster_options.path)
        return job_begin(cluster_options.job, cluster_options.path, err);
    if (!config || !*config)
        return error_set(err, ERR_USAGE, "which cluster? -c FILE, or TF_CONFIG");
    char task[TASK_TEXT_BYTES];
    struct str text = STR_INIT;
    if (!cluster_config_text(&text, config, task, err))
        job_begin_text(cluster_options.job, str_text(&text), "TF_CONFIG", err);
    str_release(&text);
    return err->code;
}

int ps_end(struct ps_call *call, struct error *err)
{
    (void)call;
    return check_job(err) ? err->code : job_end(cluster_options.job, err);
}

struct watch_view {
    FILE *out;
    struct progress progress;
};

static void print_line(void *context, const char *text)
{
    const struct watch_view *watching = context;
    progress_clear();
    fprintf(watching->out, "%s\n", text);
    fflush(watching->out);
}

static void draw(void *context, const struct watch_state *state)
{
    struct watch_view *watching = context;
    watch_line_draw(&watching->progress, state);
}

int ps_watch(struct ps_call *call, struct error *err)
{
    struct tool *tool = call->tool;
    struct watch_view watching;
    struct watch_options options = {.job_folder = cluster_options.job,
                                    .key_file = cluster_options.key_file,
                                    .producer = tool->table->tool,
                                    .no_key = cluster_options.no_key,
                                    .lease = cluster_options.lease,
                                    .line = print_line,
                                    .state = draw,
                                    .ends = tool_is_asked,
                                    .context = &watching};
    if (check_job(err) || tool_open_text(tool, &watching.out, err))
        return err->code;
    tool_catch_signals();
    bool shown = isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO) && !tool->quiet;
    progress_start(&watching.progress, shown, stderr, "step", 0, -1);
    return watch_job(&options, err);
}

void ps_warn_of_supervisor(const struct tool *tool)
{
    if (cluster_options.job && job_is_running(cluster_options.job))
        tool_say(tool,
                 "tf-run supervises this job and will start again what is stopped; "
                 "tf-run stop --job %s ends the job",
                 cluster_options.job);
}
