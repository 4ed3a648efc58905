/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/spawn.h"
#include "supervise/control.h"
#include "supervise/pidfd.h"

#define LOCK_SECONDS 10 /* for a guard that is about to finish */
#define GRACE_SECONDS 2 /* for processes that end by their parent-death pipe */
#define KILL_SECONDS 10 /* then some process cannot be killed */
#define TEMPLATE_SIGNS 6

static const struct timespec look_again = {0, 50000000};

/* ---- the folder and its lock ---- */

/* Waits a while for the lock: the guard of a dead holder may still be cleaning up. */
static int take_lock(struct guard_options *guard, int folder, struct error *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char text[32];
    guard->lock = openat(folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (guard->lock < 0)
        return error_set_errno(err, ERR_IO, "job directory %s: lock", guard->made);
    for (int i = 0; fcntl(guard->lock, F_OFD_SETLK, &lock); i++) {
        char written[32] = "";
        ssize_t got = pread(guard->lock, written, sizeof written - 1, 0);
        long holder = got > 0 ? atol(written) : 0; /* 0: unknown */
        if ((holder && !kill((pid_t)holder, 0)) || i > LOCK_SECONDS * 20)
            return error_set(err, ERR_RETRY, "job directory %s: another tf-run (pid %ld) has it",
                             guard->folder, holder);
        nanosleep(&look_again, NULL);
    }
    int n = snprintf(text, sizeof text, "%ld\n", (long)guard->owner);
    if (ftruncate(guard->lock, 0) || pwrite(guard->lock, text, (size_t)n, 0) != n)
        return error_set_errno(err, ERR_IO, "job directory %s: lock", guard->made);
    return 0;
}

int guard_prepare(struct guard_options *guard, struct error *err)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    guard->lock = -1;
    snprintf(guard->made, sizeof guard->made, "%s", guard->folder ? guard->folder : "");
    if (!guard->temporary)
        return 0;
    /* The X at the end are replaced by letters and digits. */
    static const char signs[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    uint64_t number;
    size_t n = strlen(guard->made);
    if (n < TEMPLATE_SIGNS || strspn(guard->made + n - TEMPLATE_SIGNS, "X") != TEMPLATE_SIGNS)
        return error_set(err, ERR_USAGE, "--temporary: '%s' does not end in XXXXXX", guard->folder);
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return error_set_errno(err, ERR_OS, "getrandom");
    for (size_t i = n - TEMPLATE_SIGNS; i < n; i++, number /= sizeof signs - 1)
        guard->made[i] = signs[number % (sizeof signs - 1)];
    return 0;
}

int guard_open(struct guard_options *guard, struct error *err)
{
    if (!guard->folder)
        return 0;
    if (mkdir(guard->made, 0700) && (guard->temporary || errno != EEXIST))
        return error_set_errno(err, ERR_IO, "job directory %s", guard->made);
    int folder = open(guard->made, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return error_set_errno(err, errno == EACCES ? ERR_DENIED : ERR_IO, "job directory %s",
                               guard->made);
    int code = take_lock(guard, folder, err);
    close(folder);
    return code;
}

/* ---- the end ---- */

static bool is_owner(void *context, pid_t pid, const char *mark)
{
    const struct guard_options *guard = context;
    (void)mark;
    return pid == guard->owner || pid == getpid();
}

static void kill_all(const struct guard_options *guard, double grace)
{
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%ld.", (long)guard->owner);
    for (int i = 0; i < (grace + KILL_SECONDS) * 20; i++) {
        if (!marks_kill(prefix, i < grace * 20 ? 0 : SIGKILL, is_owner, (void *)guard))
            return;
        nanosleep(&look_again, NULL);
    }
}

static void clean_up(const struct guard_options *guard)
{
    const char *shell[] = {"sh", "-c", guard->cleanup, "sh", guard->made, NULL};
    const char *rm[] = {"rm", "-rf", "--", guard->made, NULL};
    const struct spawn spawn = {
        .words = guard->temporary ? rm : shell, .in = -1, .out = -1, .err = -1};
    pid_t pid;
    if ((guard->temporary || guard->cleanup) && !spawn_program(&spawn, &pid))
        guard_await(pid, KILL_SECONDS);
}

/* ---- the guard's own process ---- */

int guard_detach(struct guard_options *guard, pid_t *pid, struct error *err)
{
    int ready[2];
    char byte;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ready) || (*pid = fork()) < 0)
        return error_set_errno(err, ERR_OS, "a guard");
    close(ready[!!*pid]);
    if (!*pid) {
        /* Once there is a folder, signals to the caller's group must not come here. It is no error
         * if the caller cannot be told: it has ended, and there is only more to do. */
        setsid();
        int code = guard_open(guard, err);
        if (!code)
            send(ready[1], "", 1, MSG_NOSIGNAL);
        close(ready[1]);
        return code;
    }
    bool is_ready = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    if (is_ready)
        return 0;
    /* The guard has failed, or was killed: then no other process knows of the folder. */
    int status;
    if (waitpid(*pid, &status, 0) == *pid && WIFEXITED(status))
        return err->code = WEXITSTATUS(status);
    if (guard->temporary)
        clean_up(guard);
    return error_set(err, ERR_OS, "the job's guard was killed");
}

void guard_run(const struct guard_options *guard)
{
    sigset_t all;
    int owner = pidfd_of(guard->owner);
    setsid();
    /* Readers of a pipe that the guard has inherited must not have to wait for the guard's end. */
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2; fd++)
        dup2(null, fd);
    for (int fd = 3; fd < 1024; fd++)
        if (fd != guard->lock && fd != owner)
            close(fd);
    sigemptyset(&all);
    sigaddset(&all, SIGUSR1);
    struct pollfd wait[2] = {{.fd = owner, .events = POLLIN},
                             {.fd = signalfd(-1, &all, SFD_CLOEXEC), .events = POLLIN}};
    while (owner >= 0 && poll(wait, 2, -1) < 0 && errno == EINTR)
        ;
    for (int n = 1; n < NSIG; n++)
        signal(n, SIG_IGN); /* except SIGKILL and SIGSTOP; pending ones are discarded */
    signal(SIGCHLD, SIG_DFL);
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    kill_all(guard, wait[1].revents ? 0 : GRACE_SECONDS);
    control_remove(guard->made);
    clean_up(guard);
    if (guard->lock >= 0 && ftruncate(guard->lock, 0))
        return; /* it still names the dead owner */
}
