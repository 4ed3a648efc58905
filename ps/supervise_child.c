/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes: how they begin, and how the end of each is heard of.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "ps/guard.h"
#include "ps/supervise_private.h"

#define GUARD_MILLISECONDS 15000 /* for its work at the end */
#define LIFELINE 8               /* the descriptor that tasks get it as */

extern char **environ;

/* ---- beginning ---- */

/* The environment of a child: ours, its mark, and what it is told. */
static char **environment_of(const char *mark, const char *const *extra)
{
    VEC(char *) all = VEC_INIT;
    vec_push(&all, (char *)mark);
    for (; *extra; extra++)
        vec_push(&all, (char *)*extra);
    for (char **at = environ; *at; at++)
        if (!str_starts(*at, MARK_NAME "="))
            vec_push(&all, *at);
    vec_push(&all, NULL);
    return all.items;
}

static void restore_signals(void)
{
    sigset_t none;
    const int reset[] = {SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD};
    for (size_t i = 0; i < sizeof reset / sizeof *reset; i++)
        signal(reset[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void put(int fd, int to)
{
    if (fd < 0)
        fd = open("/dev/null", O_RDWR);
    if (fd == to)
        fcntl(fd, F_SETFD, 0);
    else
        dup2(fd, to);
}

/* In the child, where other threads' locks may be held for ever: system calls only. */
static _Noreturn void become(const struct supervisor *s, const struct spawn *spawn, pid_t parent,
                             char **environment)
{
    char *words[] = {"sh", "-c", (char *)spawn->line, NULL};
    setsid();
    if (!spawn->holds_lifeline)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(ERR_UNAVAILABLE);
    restore_signals();
    put(spawn->in, STDIN_FILENO);
    put(spawn->out, STDOUT_FILENO);
    if (spawn->err >= 0)
        put(spawn->err, STDERR_FILENO);
    if (spawn->holds_lifeline)
        put(s->lifeline[0], LIFELINE);
    execve("/bin/sh", words, environment);
    _exit(127);
}

int spawn_shell(struct supervisor *s, struct process *process, const struct spawn *spawn)
{
    char mark[128];
    pid_t self = getpid();
    snprintf(process->mark, sizeof process->mark, "%ld.%.60s.%d", (long)self, spawn->kind,
             ++s->serial);
    snprintf(mark, sizeof mark, MARK_NAME "=%s", process->mark);
    char **environment = environment_of(mark, spawn->extra);
    pid_t pid = fork();
    if (!pid)
        become(s, spawn, self, environment);
    mem_free(environment);
    if (pid < 0)
        return -1;
    process->pid = pid;
    process->since = time_now();
    process->kill_at = 0;
    s->dirty = true;
    return 0;
}

void process_signal(const struct process *process, int signal)
{
    if (process->pid > 0)
        kill(-process->pid, signal);
}

/* One that has been killed has let the lock go. */
void spawn_guard(struct supervisor *s)
{
    char owner[32], mark[] = MARK_NAME "=";
    const char *none[] = {NULL};
    char *words[8] = {(char *)s->options.program, "--guard", owner};
    int n = 3;
    if (s->folder) {
        words[n++] = "--job";
        words[n++] = s->folder;
    }
    if (s->cleanup) {
        words[n++] = "--cleanup";
        words[n++] = s->cleanup;
    }
    snprintf(owner, sizeof owner, "%ld", (long)getpid());
    char **environment = environment_of(mark, none);
    pid_t pid = fork();
    if (!pid) {
        restore_signals();
        execvpe(words[0], words, environment);
        _exit(127);
    }
    mem_free(environment);
    s->guard.pid = pid > 0 ? pid : 0;
    s->guard.since = time_now();
    s->guard_is_child = true;
}

/* One that tf-run has started is nobody's child. */
void look_at_guard(struct supervisor *s)
{
    bool is_gone = !s->guard.pid;
    if (s->guard.pid && !s->guard_is_child) {
        int fd = pidfd_open(s->guard.pid, 0);
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        is_gone = fd < 0 || poll(&wait, 1, 0) > 0;
        if (fd >= 0)
            close(fd);
    }
    if (is_gone && time_now() > s->guard.since + 1)
        spawn_guard(s);
}

/* It waits for nobody else: its work is the last that is to be seen. */
void release_guard(struct supervisor *s)
{
    int fd = s->guard.pid ? pidfd_open(s->guard.pid, 0) : -1;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (fd < 0)
        return;
    pidfd_send_signal(fd, SIGUSR1, NULL, 0);
    poll(&wait, 1, GUARD_MILLISECONDS);
    close(fd);
}

/* ---- ending ---- */

static bool is_alive(const struct process *process, const char *mark)
{
    return process->pid && !strcmp(process->mark, mark);
}

static bool belongs_to_a_living(void *context, pid_t pid, const char *mark)
{
    struct supervisor *s = context;
    if (pid == getpid() || is_alive(&s->hook, mark))
        return true;
    for (size_t i = 0; i < s->tasks.n; i++)
        if (is_alive(&s->tasks.items[i]->main, mark) || is_alive(&s->tasks.items[i]->feeder, mark))
            return true;
    return false;
}

struct ended {
    struct process *process; /* NULL: an orphan */
    struct task *task;       /* NULL: a hook, or the guard */
    int status;              /* as a shell has it */
};

static struct ended find(struct supervisor *s, pid_t pid)
{
    for (size_t i = 0; i < s->tasks.n; i++) {
        struct task *task = s->tasks.items[i];
        if (task->main.pid == pid)
            return (struct ended){&task->main, task, 0};
        if (task->feeder.pid == pid)
            return (struct ended){&task->feeder, task, 0};
    }
    return (struct ended){.process = s->hook.pid == pid    ? &s->hook
                                     : s->guard.pid == pid ? &s->guard
                                                           : NULL};
}

static int status_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void tell_of(struct supervisor *s, const struct ended *ended)
{
    if (ended->process == &s->guard) {
        if (s->phase < PHASE_GONE && time_now() - s->guard.since > 0.5)
            spawn_guard(s);
    } else if (ended->process == &s->hook) {
        hook_ended(s, ended->status);
    } else if (ended->process == &ended->task->main) {
        task_ended(s, ended->task, ended->status);
    } else {
        feeder_ended(s, ended->task, ended->status);
    }
}

/* A process that has ended keeps its number, which is its group's, until it is waited for. */
void reap(struct supervisor *s)
{
    VEC(struct ended) all = VEC_INIT;
    char prefix[32];
    siginfo_t info;
    for (;;) {
        int status;
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
            break;
        struct ended ended = find(s, info.si_pid);
        if (ended.process)
            process_signal(ended.process, SIGKILL);
        if (waitpid(info.si_pid, &status, WNOHANG) != info.si_pid || !ended.process)
            continue;
        ended.status = status_of(status);
        ended.process->pid = 0;
        vec_push(&all, ended);
    }
    snprintf(prefix, sizeof prefix, "%ld.", (long)getpid());
    if (all.n)
        marks_kill(prefix, SIGKILL, belongs_to_a_living, s);
    for (size_t i = 0; i < all.n; i++)
        tell_of(s, &all.items[i]);
    s->dirty |= all.n > 0;
    vec_release(&all);
}
