/* SPDX-License-Identifier: Apache-2.0
 *
 * One task: its files, its feed command, its start and its end; and any process: how it is started,
 * and how its end is noticed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervise/reaper.h"
#include "supervise/supervise_private.h"

#define FEEDER_SECONDS 1.0 /* for a feed command to end once told to */
#define PARENT_PIPE 8      /* descriptor number of the parent-death pipe in children */
#define TAIL_BYTES 4096    /* of what it says, examined at the end */
#define BRIEF_SECONDS 3.0  /* a task that lives shorter lacks something */

/* ---- a process, from its start to its end ---- */

int start_shell(struct supervisor *s, struct process *process, const char *line, struct spawn how)
{
    char mark[64];
    const char *words[] = {"/bin/sh", "-c", line, NULL}, *environment[ENVIRONMENT_MAX + 2] = {mark};
    for (int i = 0; i < ENVIRONMENT_MAX && how.environment[i]; i++)
        environment[i + 1] = how.environment[i];
    process->serial = ++s->serial;
    process->since = time_now();
    process->late = (struct lateness){0};
    snprintf(mark, sizeof mark, MARK_NAME "=%ld.%d", (long)getpid(), process->serial);
    how.words = words;
    how.environment = environment;
    how.inherited = s->parent_pipe[0];
    how.as = PARENT_PIPE;
    how.session = true;
    return errno = spawn_program(&how, &process->pid);
}

void process_signal(const struct process *process, int signal)
{
    if (process->pid)
        kill(-process->pid, signal);
}

bool was_killed(int status)
{
    return status > 128 && status < 255;
}

static bool belongs_to_a_living(void *context, pid_t pid, const char *mark)
{
    const struct supervisor *s = context;
    const char *serial = strchr(mark, '.');
    for (const struct process *process = s->processes; process; process = process->next)
        if (process->pid && serial && atoi(serial + 1) == process->serial)
            return true;
    return pid == getpid();
}

/* A process that has ended keeps its ID, which is also its group's, until it is waited for. */
static bool wait_for_all(struct supervisor *s)
{
    siginfo_t info = {0};
    bool any = false;
    while (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid) {
        for (struct process *process = s->processes; process; process = process->next)
            if (process->pid == info.si_pid) {
                process_signal(process, SIGKILL);
                process->pid = 0;
                process->status = info.si_status + (info.si_code == CLD_EXITED ? 0 : 128);
                process->has_ended = any = true;
            }
        waitpid(info.si_pid, NULL, WNOHANG);
    }
    return any;
}

/* Processes that they left behind are killed before their ends are reported. */
void reap(struct supervisor *s)
{
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%ld.", (long)getpid());
    if (!wait_for_all(s))
        return;
    marks_kill(prefix, SIGKILL, belongs_to_a_living, s);
    for (struct process *process = s->processes; process; process = process->next)
        if (process->has_ended) {
            process->has_ended = false;
            process->ended(s, process, process->status);
        }
}

/* ---- the stderr of a task: why it ended, and lines to show the user at once ---- */

/* Reads from an offset of the file on. Returns the number of bytes. */
static size_t read_errors(const struct task *task, off_t at, char bytes[TAIL_BYTES + 1])
{
    size_t n = task->errors ? file_read_part(task->errors, at, bytes, TAIL_BYTES) : 0;
    bytes[n] = '\0';
    return n;
}

/* Reads the last output of the task's last process: other output is no cause of its end. */
static size_t read_last(const struct task *task, char bytes[TAIL_BYTES + 1])
{
    struct stat file;
    bytes[0] = '\0';
    if (!task->errors || stat(task->errors, &file) || file.st_size <= task->began)
        return 0;
    off_t at = file.st_size - TAIL_BYTES;
    return read_errors(task, at > task->began ? at : task->began, bytes);
}

/* Gets the last line, preferring one of a tool to a shell's remark about processes that ended. */
void task_last_words(const struct task *task, char text[TEXT_BYTES])
{
    char tail[TAIL_BYTES + 1], *rest = tail, *line;
    const char *last = "", *tool = NULL;
    read_last(task, tail);
    while ((line = strsep(&rest, "\r\n"))) {
        line += time_stamp_length(line);
        if (*line)
            last = line;
        if (str_starts(line, "tf-") || str_starts(line, "ssh: "))
            tool = line;
    }
    snprintf(text, TEXT_BYTES, "%s", tool ? tool : last);
}

/* Prints the last lines of a task unchanged when the job ends. */
void task_last_lines(struct supervisor *s, const struct task *task)
{
    char tail[TAIL_BYTES + 1];
    size_t n = read_last(task, tail);
    while (n && strchr("\r\n", tail[n - 1]))
        tail[--n] = '\0';
    for (int lines = 3; n && (tail[n - 1] != '\n' || --lines);)
        n--;
    if (tail[n])
        s->options.say(s->options.context, tail + n);
}

/* Gets "killed by signal 9", or the last line of its output. */
void task_cause(const struct task *task, char text[TEXT_BYTES])
{
    const struct life *life = &task->life;
    char words[TEXT_BYTES];
    task_last_words(task, words);
    if (*life->why || was_killed(life->code))
        snprintf(text, TEXT_BYTES, "%s", *life->why ? life->why : life->ended);
    else
        snprintf(text, TEXT_BYTES, "ended with exit %d (%.900s)%s%s", life->code, words,
                 *life->fed ? ", fed by a command that ended with " : "", life->fed);
}

/* Shows new whole lines that contain a text of `repeats`. */
static void task_repeat(struct supervisor *s, struct task *task)
{
    char bytes[TAIL_BYTES + 1], *line = bytes, *end;
    struct stat file;
    if (stat(task->errors, &file) || file.st_size <= task->repeated)
        return;
    size_t n = read_errors(task, task->repeated, bytes);
    for (; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        /* The shown text begins at the first line of `repeats` that is found. */
        const char *repeated = NULL;
        for (const char *text = task->repeats; text && !repeated; text = strchr(text, '\n')) {
            text += *text == '\n';
            repeated = memmem(line, strlen(line), text, strcspn(text, "\n"));
        }
        if (repeated)
            (str_starts(repeated, "no") ? say_loss : say)(s, "%s: %s", task->name, repeated);
    }
    task->repeated += n == TAIL_BYTES && line == bytes ? (off_t)n : line - bytes;
}

/* ---- a task ---- */

bool task_is_busy(const struct task *task)
{
    return task->main.pid || task->feeder.pid;
}

static void close_input(struct task *task)
{
    close_if_open(task->input);
    task->input = -1;
}

/* ---- beginning ---- */

void task_plan(struct task *task, double pause)
{
    task->start_at = task->asked = time_now() + pause;
}

/* The supervisor keeps the pipe's writing end open, too: the task sees the end of its stdin only
 * once the supervisor knows that the feed command has ended well. */
static int start_both(struct supervisor *s, struct task *task, struct spawn how)
{
    int ends[2], failed = 0;
    struct spawn feeder = how;
    if (task->feed && pipe2(ends, O_CLOEXEC))
        return errno;
    if (task->feed) {
        feeder.out = task->input = ends[1];
        how.in = ends[0];
        failed = start_shell(s, &task->feeder, task->feed, feeder);
    }
    if (!failed)
        failed = start_shell(s, &task->main, task->command, how);
    close_if_open(how.in);
    return failed;
}

/* Sets JOB_HOW: first start, restart of this task alone, or of all. A task that cannot be started
 * counts as ended. */
static void task_start(struct supervisor *s, struct task *task)
{
    char start[32], how[32];
    const char *words[] = {start, how, NULL};
    struct spawn spawn = {
        .environment = words, .in = -1, .out = STDOUT_FILENO, .err = STDERR_FILENO};
    snprintf(start, sizeof start, "JOB_START=%d", task->starts);
    snprintf(how, sizeof how, "JOB_HOW=%s",
             task->again     ? "again"
             : s->rounds > 1 ? "anew"
                             : "first");
    if (task->errors)
        spawn.err = open(task->errors, O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
    if (task->errors && spawn.err >= 0)
        task->began = lseek(spawn.err, 0, SEEK_END);
    if (!task->starts)
        task->repeated = task->began; /* written by an earlier job */
    task->starts++;
    task->start_at = 0;
    task->incarnation = s->folder ? s->options.incarnation(s->folder, task->name) : 0;
    task->life = (struct life){0};
    int failed = start_both(s, task, spawn);
    if (failed) {
        say(s, "%s cannot be started: %s", task->name, strerror(failed));
        task_ended(s, &task->main, ERR_OS);
    }
    task->pid = task->main.pid;
    if (task->errors)
        close_if_open(spawn.err);
}

/* ---- ending ---- */

static void end_feeder(struct task *task)
{
    if (!task->feeder.pid || task->life.kill_feeder_at)
        return;
    process_signal(&task->feeder, SIGTERM);
    process_signal(&task->feeder, SIGCONT);
    task->life.kill_feeder_at = time_now() + FEEDER_SECONDS;
}

/* A task whose stdin is held, such as an ssh, ends in order when its stdin is closed. */
void task_tell_to_end(struct task *task)
{
    task->start_at = 0;
    if (!task->main.pid || task->life.told_to_end)
        return;
    task->life.told_to_end = true;
    late_begin(&task->main);
    if (task->hold) {
        end_feeder(task);
        close_input(task);
    } else {
        kill(task->main.pid, SIGTERM);
    }
}

void task_kill(struct task *task)
{
    task->start_at = 0;
    process_signal(&task->main, SIGKILL);
    process_signal(&task->feeder, SIGKILL);
    task->life.kill_feeder_at = time_now();
}

/* Returns whether a task that was told to end has ended by that signal. */
static bool is_stopped(const struct life *life, int status)
{
    return life && life->told_to_end && status == 128 + SIGTERM;
}

static void describe(char text[ENDED_BYTES], const struct life *life, int status)
{
    if (is_stopped(life, status))
        snprintf(text, ENDED_BYTES, "stopped");
    else if (was_killed(status))
        snprintf(text, ENDED_BYTES, "killed by signal %d", status - 128);
    else
        snprintf(text, ENDED_BYTES, status ? "exit %d" : "done%.0d", status);
}

/* The task must not take the truncated output of a killed command for a whole feed. A command that
 * was told to end, or that writes to a closed pipe, counts as well ended. */
void feeder_ended(struct supervisor *s, struct process *process, int status)
{
    struct task *task = process->task;
    struct life *life = &task->life;
    char ended[ENDED_BYTES];
    bool by_itself = status && !life->kill_feeder_at;
    bool failed = by_itself && status != 128 + SIGPIPE;
    bool lost = task->main.pid && by_itself && (task->hold || (failed && was_killed(status)));
    describe(ended, NULL, status);
    if (failed)
        snprintf(life->fed, sizeof life->fed, "%s", ended);
    if (lost && !s->why && s->phase == PHASE_RUN) {
        snprintf(life->why, sizeof life->why, "lost its feed command (%s)", ended);
        process_signal(&task->main, SIGKILL);
    } else if (!task->hold || !task->main.pid || life->kill_feeder_at) {
        close_input(task);
    }
}

/* A task that was told to end and failed to end well has lost something, perhaps its last
 * checkpoint: that becomes the job's result, instead of the request to end. A failure because other
 * tasks are gone does not count, as they were told to end as well. */
static void could_not_end(struct supervisor *s, struct task *task)
{
    char cause[TEXT_BYTES];
    if (!task->life.code || task->life.code == ERR_UNAVAILABLE || !s->why || s->killed_at)
        return;
    task_cause(task, cause);
    say_loss(s, "%s %s", task->name, cause);
    fail_with(s, task->life.code);
}

/* A task that ends with `absent` could not reach its host: that may change, and the next start
 * counts as the same. */
void task_ended(struct supervisor *s, struct process *process, int status)
{
    struct task *task = process->task;
    struct life *life = &task->life;
    double now = time_now();
    end_feeder(task);
    close_input(task);
    task->brief = now - task->main.since < BRIEF_SECONDS ? task->brief + 1 : 0;
    life->code = status;
    life->ready = false;
    life->done = !task->service && (!status || (is_stopped(life, status) && !s->why));
    describe(life->ended, life, status);
    if (life->told_to_end && !life->done && !was_killed(status))
        could_not_end(s, task);
    if (life->done || s->why || (s->phase != PHASE_RUN && s->phase != PHASE_END))
        return;
    if (!status || status != task->absent || s->phase != PHASE_RUN) {
        life->died_at = now;
    } else if (now < task->asked + s->timeout) {
        task->start_at = now + 1;
        task->brief = 0;
    } else {
        life->code = ERR_UNAVAILABLE;
        give_up(s, task, "");
    }
}

void task_tick(struct supervisor *s, struct task *task)
{
    double now = time_now(), kill_at = task->life.kill_feeder_at;
    if (kill_at && now >= kill_at)
        process_signal(&task->feeder, SIGKILL);
    if (task->repeats && task->errors && task->starts)
        task_repeat(s, task);
    if (s->phase == PHASE_RUN && task->start_at && now >= task->start_at && !task_is_busy(task))
        task_start(s, task);
}
