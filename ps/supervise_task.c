/* SPDX-License-Identifier: Apache-2.0
 *
 * One task: its files, its feed command, its beginning and its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ps/supervise_private.h"

#define FEEDER_SECONDS 1.0 /* a feed command has to end in, once it is told to */
#define BRIEF_SECONDS 3.0  /* who lives less long lacks something */

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

/* The pipe's writing end stays open here, too: the task sees the end of its stdin only when the
 * supervisor knows that the feed command has ended well. */
static int start_feeder(struct supervisor *s, struct task *task, struct spawn *how)
{
    int ends[2];
    struct spawn feeder = *how;
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    feeder.out = task->input = ends[1];
    how->in = ends[0];
    return start_shell(s, &task->feeder, task->feed, feeder);
}

static int start_both(struct supervisor *s, struct task *task, struct spawn how)
{
    int failed = task->feed ? start_feeder(s, task, &how) : 0;
    if (!failed)
        failed = start_shell(s, &task->main, task->command, how);
    if (failed)
        say(s, "%s cannot be started: %s", task->name, strerror(failed));
    close_if_open(how.in);
    return failed;
}

/* JOB_HOW: is it the first start, another one of this task alone, or of all? */
void task_start(struct supervisor *s, struct task *task)
{
    char start[32], how[32];
    snprintf(start, sizeof start, "JOB_START=%d", task->starts++);
    snprintf(how, sizeof how, "JOB_HOW=%s",
             task->starts_now++ ? "again"
             : s->rounds > 1    ? "anew"
                                : "first");
    int errors =
        task->errors ? open(task->errors, O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0666) : -1;
    const char *words[] = {start, how, NULL};
    struct spawn spawn = {.environment = words,
                          .in = -1,
                          .out = STDOUT_FILENO,
                          .err = task->errors ? errors : STDERR_FILENO};
    if (task->starts == 1 && errors >= 0)
        task->repeated = lseek(errors, 0, SEEK_END); /* an earlier job's */
    task->start_at = 0;
    task->life = (struct life){0};
    if (start_both(s, task, spawn))
        task_ended(s, &task->main, ERR_OS); /* as if it had, for want of processes */
    task->pid = task->main.pid;
    close_if_open(errors);
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

/* One whose stdin is held, such as an ssh, ends in good order when that ends. */
void task_tell_to_end(struct task *task)
{
    task->start_at = 0;
    if (!task->main.pid || task->life.told_to_end)
        return;
    task->life.told_to_end = true;
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

static void describe(char text[ENDED_BYTES], int status)
{
    if (was_killed(status))
        snprintf(text, ENDED_BYTES, "killed by signal %d", status - 128);
    else
        snprintf(text, ENDED_BYTES, status ? "exit %d" : "done%.0d", status);
}

/* What a killed command has written is no feed: the task must not take it for one. One that was
 * told to end, or that writes to nobody any more, has not been lost. */
void feeder_ended(struct supervisor *s, struct process *process, int status)
{
    struct task *task = process->task;
    char ended[ENDED_BYTES];
    bool killed = was_killed(status) && status != 128 + SIGPIPE;
    bool lost = task->main.pid && !task->life.kill_feeder_at && (killed || (task->hold && status));
    if (lost && !s->why && s->phase == PHASE_RUN) {
        describe(ended, status);
        snprintf(task->life.why, sizeof task->life.why, "lost its feed command (%s)", ended);
        process_signal(&task->main, SIGKILL);
    } else if (!task->hold || !task->main.pid || task->life.kill_feeder_at) {
        close_input(task);
    }
}

static void note_end(struct task *task, int status)
{
    struct life *life = &task->life;
    life->code = status;
    life->ready = false;
    life->done = !status && !task->service;
    task->brief = time_now() - task->main.since < BRIEF_SECONDS ? task->brief + 1 : 0;
    describe(life->ended, status);
}

/* Nobody answers where it is to run: that may change, and the next start is no other one. */
static void try_again(struct supervisor *s, struct task *task)
{
    double now = time_now();
    if (now < task->asked + s->timeout) {
        task->start_at = now + 1;
        task->starts_now--;
        task->brief = 0;
    } else {
        task->life.code = ERR_UNAVAILABLE;
        give_up(s, task, "");
    }
}

void task_ended(struct supervisor *s, struct process *process, int status)
{
    struct task *task = process->task;
    end_feeder(task);
    close_input(task);
    note_end(task, status);
    if (task->life.done || s->why || (s->phase != PHASE_RUN && s->phase != PHASE_END))
        return;
    if (status && status == task->absent && s->phase == PHASE_RUN)
        try_again(s, task);
    else
        task->life.died_at = time_now();
}

void task_tick(struct supervisor *s, struct task *task)
{
    double kill_at = task->life.kill_feeder_at;
    if (kill_at && time_now() >= kill_at)
        process_signal(&task->feeder, SIGKILL);
    if (task->repeats && task->starts)
        task_repeat(s, task);
}
