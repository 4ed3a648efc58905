/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-supervise: runs the tasks of a job, restarts those that die, ends all together; and queries
 * the supervisor that runs in a job's folder. tf-run executes it.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cores.h"
#include "bin/watch_line.h"
#include "cli/progress.h"
#include "cli/tool.h"
#include "ps/watch.h"
#include "supervise/job_state.h"
#include "supervise/reaper.h"
#include "supervise/supervise.h"

static bool status, stop, temporary, detach, count;
static int64_t reaped;
static const char *folder, *cleanup;

static const struct option_row rows[] = {
    {0, "job", OPTION_TEXT, &folder, "DIR", "the folder of a job, for the options that follow"},
    {0, "status", OPTION_FLAG, &status, NULL, "print the state of what runs there, as JSON"},
    {0, "stop", OPTION_FLAG, &stop, NULL, "end what runs there, as TERM does, and wait for it"},
    {0, "reaper", OPTION_NATURAL, &reaped, "PID",
     "lock DIR, and tidy up when the process PID has ended"},
    {0, "temporary", OPTION_FLAG, &temporary, NULL,
     "--reaper: DIR is a template, .XXXXXX, and is removed at the end"},
    {0, "cleanup", OPTION_TEXT, &cleanup, "LINE",
     "--reaper: a shell's line for the end; $1 is DIR"},
    {0, "detach", OPTION_FLAG, &detach, NULL,
     "--reaper: in the background; prints its pid and the folder"},
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

/* ---- the job's messages ---- */

#define LAST_WORDS_MS 1000 /* longest wait of a finished job for the reader of its messages */

/* A job never waits for a slow reader of its messages, such as a pager that is not scrolled. So its
 * own lines and those of its hooks go to memory, and from there to the reader as it takes them. */
static struct relay {
    int from, to; /* to: -1: lines go to stderr directly */
    off_t told;
} relay = {-1, -1, 0};

/* Passes on lines in pieces of PIPE_BUF bytes: a pipe that is ready takes that many. */
static void relay_pass(int milliseconds)
{
    char bytes[PIPE_BUF];
    ssize_t n;
    struct pollfd reader = {relay.to, POLLOUT, 0};
    while (relay.to >= 0 && (n = pread(relay.from, bytes, sizeof bytes, relay.told)) > 0 &&
           poll(&reader, 1, milliseconds) > 0 && (n = write(relay.to, bytes, (size_t)n)) > 0)
        relay.told += n;
}

/* ---- a job ---- */

/* Prints a line with the time, which a task's own lines have already. */
static void print_task_line(void *context, const char *text)
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

static void tick(void *context)
{
    (void)context;
    relay_pass(0);
}

static int run_job(struct tool *tool, const char *path, struct error *err)
{
    struct progress progress;
    struct supervise_options options = {.path = path,
                                        .program = tool->argv[0],
                                        .say = print_task_line,
                                        .tick = tick,
                                        .progress = draw,
                                        .context = &progress,
                                        .watch = watch_job,
                                        .incarnation = watch_incarnation};
    bool is_terminal = isatty(STDERR_FILENO);
    progress_start(&progress, is_terminal && !tool->quiet, stderr, "step", 0, -1);
    if (!is_terminal) {
        int memory = memfd_create("said", MFD_CLOEXEC);
        if (memory >= 0) {
            fcntl(memory, F_SETFL, O_APPEND);
            relay.from = memory;
            relay.to = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
            if (relay.to >= 0)
                dup2(memory, STDERR_FILENO);
        }
    }
    int code = supervise(&options, err);
    relay_pass(LAST_WORDS_MS);
    if (relay.to >= 0)
        dup2(relay.to, STDERR_FILENO);
    return code;
}

/* ---- the others ---- */

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    if (count) {
        printf("%d\n", cores_usable());
        return 0;
    }
    if (reaped) {
        struct reaper_options reaper = {.owner = (pid_t)reaped,
                                        .folder = folder,
                                        .temporary = temporary && folder,
                                        .cleanup = cleanup};
        pid_t pid = 0;
        int code = reaper_prepare(&reaper, err);
        if (!code)
            code = detach ? reaper_detach(&reaper, &pid, err) : reaper_open(&reaper, err);
        if (!code && pid)
            printf("%ld %s\n", (long)pid, reaper.made);
        else if (!code)
            reaper_run(&reaper);
        return code;
    }
    if (status || stop) {
        struct str state = STR_INIT;
        if (!folder)
            return error_set(err, ERR_USAGE, "which job? --job DIR");
        int code = job_state_ask(folder, stop, &state, err);
        if (!code && !stop)
            fputs(str_text(&state), stdout);
        str_release(&state);
        return code;
    }
    return n ? run_job(tool, operands[0], err) : error_set(err, ERR_USAGE, "which tasks? a FILE");
}

int main(int argc, char **argv)
{
    return tool_main(&table, run, argc, argv);
}
