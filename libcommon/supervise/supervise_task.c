/* SPDX-License-Identifier: Apache-2.0
 *
 * One task: its files, its feed command, its start and its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "supervise/supervise_private.h"

#define FEEDER_SECONDS 1.0 /* for a feed command to end once told to */
#define BRIEF_SECONDS 3.0  /* a task that lives shorter lacks something */

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
