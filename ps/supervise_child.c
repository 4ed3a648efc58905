/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes: how they begin, and how the end of each is heard of.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "ps/guard.h"
#include "ps/supervise_private.h"

#define LIFELINE 8 /* the descriptor that children get it as */

extern char **environ;

/* ---- beginning ---- */

/* The environment of a child: ours, its mark, and what it is told. */
static char **environment_of(const char *mark, const char *const *words)
{
    VEC(char *) all = VEC_INIT;
    vec_push(&all, (char *)mark);
    for (; *words; words++)
        vec_push(&all, (char *)*words);
    for (char **at = environ; *at; at++)
        vec_push(&all, *at);
    vec_push(&all, NULL);
    return all.items;
}

static void put(posix_spawn_file_actions_t *actions, int fd, int to)
{
    if (fd >= 0)
        posix_spawn_file_actions_adddup2(actions, fd, to);
    else
        posix_spawn_file_actions_addopen(actions, to, "/dev/null", O_RDWR, 0);
}

/* A session of its own, and signals as a shell expects them. */
static void set_attributes(posix_spawnattr_t *attributes)
{
    const int reset[] = {SIGINT, SIGQUIT, SIGTERM, SIGPIPE};
    sigset_t some, none;
    sigemptyset(&none);
    sigemptyset(&some);
    for (size_t i = 0; i < sizeof reset / sizeof *reset; i++)
        sigaddset(&some, reset[i]);
    posix_spawnattr_init(attributes);
    posix_spawnattr_setflags(attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigdefault(attributes, &some);
    posix_spawnattr_setsigmask(attributes, &none);
}

int spawn_shell(struct supervisor *s, struct process *process, const struct spawn *spawn)
{
    char mark[64], *words[] = {"sh", "-c", (char *)spawn->line, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    process->serial = ++s->serial;
    process->since = time_now();
    snprintf(mark, sizeof mark, MARK_NAME "=%ld.%d", (long)getpid(), process->serial);
    char **environment = environment_of(mark, spawn->words);
    set_attributes(&attributes);
    posix_spawn_file_actions_init(&actions);
    put(&actions, spawn->in, STDIN_FILENO);
    put(&actions, spawn->out, STDOUT_FILENO);
    put(&actions, spawn->err, STDERR_FILENO);
    put(&actions, s->lifeline[0], LIFELINE);
    errno = posix_spawn(&process->pid, "/bin/sh", &actions, &attributes, words, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    mem_free(environment);
    process->pid = errno ? 0 : process->pid;
    return errno;
}

void process_signal(const struct process *process, int signal)
{
    if (process->pid)
        kill(-process->pid, signal);
}

/* ---- ending ---- */

void close_if_open(int fd)
{
    if (fd >= 0)
        close(fd);
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

static struct process *find(const struct supervisor *s, pid_t pid)
{
    struct process *process = s->processes;
    while (process && process->pid != pid)
        process = process->next;
    return process;
}

/* A process that has ended keeps its number, which is its group's, until it is waited for. */
static int wait_for_all(struct supervisor *s)
{
    siginfo_t info = {0};
    int n = 0;
    while (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid) {
        struct process *process = find(s, info.si_pid);
        if (process) {
            process_signal(process, SIGKILL);
            process->pid = 0;
            process->status = info.si_status + (info.si_code == CLD_EXITED ? 0 : 128);
            process->has_ended = true;
            n++;
        }
        waitpid(info.si_pid, NULL, WNOHANG);
    }
    return n;
}

/* What all of them have left behind is killed before anybody hears of their ends. */
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
