/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes: how they are started, and how their ends are noticed.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/spawn.h"
#include "supervise/reaper.h"
#include "supervise/supervise_private.h"

#define PARENT_PIPE 8 /* descriptor number of the parent-death pipe in children */

/* ---- beginning ---- */

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

/* ---- ending ---- */

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
