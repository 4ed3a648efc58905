/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-supervise: runs the tasks of a job, starts again what died, ends all together; and asks the
 * one that runs in a job's folder. tf-run becomes it.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/cores.h"
#include "bin/job_table.h"
#include "bin/watch_line.h"
#include "cli/progress.h"
#include "cli/tool.h"
#include "ps/guard.h"
#include "ps/job_state.h"
#include "ps/supervise.h"

static bool status, stop, temporary, detach, count, as_table;
static int64_t guarded;
static const char *folder, *cleanup;

static const struct option_row rows[] = {
    {0, "job", OPTION_TEXT, &folder, "DIR", "the folder of a job, for the options that follow"},
    {0, "status", OPTION_FLAG, &status, NULL, "print the state of what runs there, as JSON"},
    {0, "table", OPTION_FLAG, &as_table, NULL, "--status: as a table"},
    {0, "stop", OPTION_FLAG, &stop, NULL, "end what runs there, as TERM does, and wait for it"},
    {0, "guard", OPTION_INT, &guarded, "PID",
     "lock DIR, and tidy up when the process PID has ended"},
    {0, "temporary", OPTION_FLAG, &temporary, NULL,
     "--guard: DIR is a template, .XXXXXX, and is removed at the end"},
    {0, "cleanup", OPTION_TEXT, &cleanup, "LINE", "--guard: a shell's line for the end; $1 is DIR"},
    {0, "detach", OPTION_FLAG, &detach, NULL,
     "--guard: in the background; prints its pid and the folder"},
    {0, "cores", OPTION_FLAG, &count, NULL, "print how many cores a process here may use"},
    TOOL_COMMON_ROWS,
    {0}};

static const struct option_table table = {
    .tool = "tf-supervise",
    .summary = "run the tasks of a job, and start again what dies",
    .operands = "FILE",
    .description =
        "Runs the tasks in FILE, each in a session of its own: starts again what dies, alone or "
        "with all others, as often as FILE says; ends all in good order when they are done or a "
        "signal comes, and at once when a second one does. docs/supervise.md describes FILE. "
        "The exit status is 0, that of the task that ended the job, or 128+n for signal n.",
    .examples = "tf-supervise job.tasks\n"
                "tf-supervise --status --job run\n"
                "tf-supervise --stop --job run",
    .rows = rows,
    .operands_max = 1,
};

/* ---- a job ---- */

/* What a task has said has its time already. */
static void say(void *context, const char *text)
{
    char stamp[TIME_STAMP_BYTES] = "";
    (void)context;
    if (!time_stamp_length(text))
        tool_stamp(stamp);
    progress_clear();
    fprintf(stderr, "%s%s\n", stamp, text);
}

static void draw(void *context, const struct watch_state *state)
{
    if (state)
        watch_line_draw(context, state);
    else
        progress_clear();
}

static int run_job(struct tool *tool, const char *path, struct error *err)
{
    struct progress progress;
    struct supervise_options options = {
        .path = path, .program = tool->argv[0], .say = say, .progress = draw, .context = &progress};
    progress_start(&progress, isatty(STDERR_FILENO) && !tool->quiet, stderr, "step", 0, -1);
    return supervise(&options, err);
}

/* ---- the others ---- */

static int ask(struct error *err)
{
    struct str state = STR_INIT, text = STR_INIT;
    if (!folder)
        return error_set(err, ERR_USAGE, "which job? --job DIR");
    int code = job_state_ask(folder, stop, &state, err);
    if (!code && as_table)
        job_table_print(folder, &state, &text);
    if (!code && !stop)
        fputs(str_text(as_table ? &text : &state), stdout);
    str_release(&state);
    str_release(&text);
    return code;
}

static int run_guard(struct error *err)
{
    struct guard_options guard = {.owner = (pid_t)guarded,
                                  .folder = folder,
                                  .temporary = temporary && folder,
                                  .cleanup = cleanup};
    pid_t pid = 0;
    int code = guard_prepare(&guard, err);
    if (!code)
        code = detach ? guard_detach(&guard, &pid, err) : guard_open(&guard, err);
    if (!code && pid)
        printf("%ld %s\n", (long)pid, guard.made);
    else if (!code)
        guard_run(&guard);
    return code;
}

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    if (count) {
        printf("%d\n", cores_usable());
        return 0;
    }
    if (guarded)
        return run_guard(err);
    if (status || stop)
        return ask(err);
    return n ? run_job(tool, operands[0], err) : error_set(err, ERR_USAGE, "which tasks? a FILE");
}

int main(int argc, char **argv)
{
    return tool_main(&table, run, argc, argv);
}
