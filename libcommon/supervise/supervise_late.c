/* SPDX-License-Identifier: Apache-2.0
 *
 * Stalled processes: the feed command of a job without progress; and processes that are to end but
 * do not: a task that was told to end, or has left the job, and any hook from its start on. The
 * user is told which it is, and the wait for it is limited.
 */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervise/supervise_private.h"

#define NEWS_SECONDS 5.0 /* until the user is told; then twice as long each time */
#define LOOK_SECONDS 1.0 /* between two checks whether a process is stopped */
#define STOPPED_PART 0.5 /* of the timeout: how long it may be stopped */
#define KILL_SECONDS 2.0 /* from TERM, possibly an earlier one, to KILL */
#define GRACE_TIMEOUTS                                                                             \
    10 /* the time of `grace`, where the file does not say, in those of `timeout` */
#define STAT_BYTES 1024

/* ---- stopped processes ---- */

/* Parses proc_pid_stat(5): the third field and the sixth. */
static bool is_stopped_in(const char *pid, long session)
{
    char path[64], text[STAT_BYTES], state;
    long of;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    size_t n = file_read_part(path, 0, text, sizeof text - 1);
    text[n] = '\0';
    const char *at = strrchr(text, ')');
    return at && sscanf(at, ") %c %*d %*d %ld", &state, &of) == 2 && of == session && state == 'T';
}

/* Checks whether a process of its session is stopped. */
static void look_whether_stopped(struct process *process, double now)
{
    struct lateness *late = &process->late;
    struct dirent *entry;
    pid_t found = 0;
    if (now < late->looked + LOOK_SECONDS)
        return;
    late->looked = now;
    DIR *all = opendir("/proc");
    while (all && !found && (entry = readdir(all)))
        if (*entry->d_name >= '1' && *entry->d_name <= '9' &&
            is_stopped_in(entry->d_name, process->pid))
            found = (pid_t)atol(entry->d_name);
    if (all)
        closedir(all);
    late->stopped = found;
    if (!found)
        late->stopped_at = 0;
    else if (!late->stopped_at)
        late->stopped_at = now;
}

/* ---- handling of late processes ---- */

static void end_process(struct supervisor *s, struct process *process, const char *name)
{
    struct lateness *late = &process->late;
    say(s, "%s (pid %ld) has not ended in %.0f s: killed", name, (long)process->pid,
        time_now() - late->since);
    if (process == &s->hook)
        s->hook_tries = HOOK_TRIES; /* another try would be no faster */
    process_signal(process, SIGTERM);
    process_signal(process, SIGCONT);
    late->kill_at = time_now() + KILL_SECONDS;
}

static void look_at(struct supervisor *s, struct process *process, const char *name,
                    double patience)
{
    struct lateness *late = &process->late;
    double now = time_now();
    if (!process->pid || !late->since || now < late->since + LOOK_SECONDS)
        return;
    look_whether_stopped(process, now);
    double end = late->since + patience;
    double stop_ends = late->stopped_at ? late->stopped_at + STOPPED_PART * s->timeout : INFINITY;
    if (late->kill_at && now >= late->kill_at) {
        process_signal(process, SIGKILL);
    } else if (!late->kill_at && now >= end) {
        end_process(s, process, name);
    } else if (now >= stop_ends) {
        /* A hook is repeated; a task has done its work already, or does it once continued. */
        bool again = process == &s->hook;
        say(s, "%s (pid %ld) stands still, stopped by a signal: %s", name, (long)late->stopped,
            again ? "killed" : "continued");
        late->stopped_at = 0;
        process_signal(process, again ? SIGKILL : SIGCONT);
    } else if (!late->kill_at && now >= late->since + late->news) {
        say(s, "waiting for %s (pid %ld) to end, %s%.0f s left", name,
            (long)(late->stopped_at ? late->stopped : process->pid),
            late->stopped_at ? "which is stopped, " : "", fmin(end, stop_ends) - now);
        late->news *= 2;
    }
}

/* A worker waits for feeds without limit, and then looks like one that computes long. If the job
 * makes no progress, a stopped feed command is reported, and after a while killed. */
static void look_at_feeds(struct supervisor *s)
{
    double now = time_now();
    if (s->phase != PHASE_RUN || s->step != s->stood_at || !s->stood_since) {
        s->stood_at = s->step;
        s->stood_since = now;
    }
    if (now < s->stood_since + NEWS_SECONDS)
        return;
    for (struct task *task = s->tasks; task; task = task->next) {
        struct lateness *late = &task->feeder.late;
        if (!task->feeder.pid || now < late->looked + LOOK_SECONDS)
            continue;
        look_whether_stopped(&task->feeder, now);
        if (late->stopped && late->stopped_at == now)
            say_loss(s, "%s waits: its feed command (pid %ld) stands still, stopped by a signal",
                     task->name, (long)late->stopped);
        if (!late->stopped || now < late->stopped_at + STOPPED_PART * s->timeout)
            continue;
        say_loss(s, "%s: its feed command (pid %ld) stands still, stopped by a signal: killed",
                 task->name, (long)late->stopped);
        *late = (struct lateness){0};
        process_signal(&task->feeder, SIGKILL); /* a worker that has lost it is restarted */
    }
}

void late_begin(struct process *process)
{
    if (!process->late.since)
        process->late = (struct lateness){.since = time_now(), .news = NEWS_SECONDS};
}

void late_tick(struct supervisor *s)
{
    static const char *const hooks[HOOK_COUNT] = {"", "the hook 'restart'", "the hook 'stop'",
                                                  "the hook 'end'", "the hook 'over'"};
    double grace = s->grace > 0 ? s->grace : GRACE_TIMEOUTS * s->timeout;
    look_at_feeds(s);
    look_at(s, &s->hook, hooks[s->hook_kind], grace);
    for (struct task *task = s->tasks; task; task = task->next)
        look_at(s, &task->main, task->name,
                task->service || !task->life.told_to_end ? s->timeout : grace);
}
