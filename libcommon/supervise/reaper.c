/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/reaper.h"

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

#include "base/file.h"
#include "base/spawn.h"
#include "base/str.h"
#include "supervise/control.h"
#include "supervise/pidfd.h"

#define LOCK_SECONDS 10 /* for a reaper that is about to finish */
#define GRACE_SECONDS 2 /* for processes that end by their parent-death pipe */
#define KILL_SECONDS 10 /* then some process cannot be killed */
#define TEMPLATE_SIGNS 6
#define RELEASE_MILLISECONDS 15000 /* for its final clean-up */
#define SUCCESSOR_SECONDS 2        /* in which a killed reaper is replaced */

static const struct timespec look_again = {0, 50000000};

/* ---- the folder and its lock ---- */

/* Waits a while for the lock: the reaper of a dead holder may still be cleaning up. */
static int take_lock(struct reaper_options *reaper, int folder, struct error *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char text[32];
    reaper->lock = openat(folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (reaper->lock < 0)
        return error_set_errno(err, ERR_IO, "job directory %s: lock", reaper->made);
    for (int i = 0; fcntl(reaper->lock, F_OFD_SETLK, &lock); i++) {
        char written[32] = "";
        ssize_t got = pread(reaper->lock, written, sizeof written - 1, 0);
        long holder = got > 0 ? atol(written) : 0; /* 0: unknown */
        if ((holder && !kill((pid_t)holder, 0)) || i > LOCK_SECONDS * 20)
            return error_set(err, ERR_RETRY, "job directory %s: another tf-run (pid %ld) has it",
                             reaper->folder, holder);
        nanosleep(&look_again, NULL);
    }
    int n = snprintf(text, sizeof text, "%ld\n", (long)reaper->owner);
    if (ftruncate(reaper->lock, 0) || pwrite(reaper->lock, text, (size_t)n, 0) != n)
        return error_set_errno(err, ERR_IO, "job directory %s: lock", reaper->made);
    return 0;
}

int reaper_prepare(struct reaper_options *reaper, struct error *err)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    reaper->lock = -1;
    snprintf(reaper->made, sizeof reaper->made, "%s", reaper->folder ? reaper->folder : "");
    if (!reaper->temporary)
        return 0;
    /* The X at the end are replaced by letters and digits. */
    static const char signs[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    uint64_t number;
    size_t n = strlen(reaper->made);
    if (n < TEMPLATE_SIGNS || strspn(reaper->made + n - TEMPLATE_SIGNS, "X") != TEMPLATE_SIGNS)
        return error_set(err, ERR_USAGE, "--temporary: '%s' does not end in XXXXXX",
                         reaper->folder);
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return error_set_errno(err, ERR_OS, "getrandom");
    for (size_t i = n - TEMPLATE_SIGNS; i < n; i++, number /= sizeof signs - 1)
        reaper->made[i] = signs[number % (sizeof signs - 1)];
    return 0;
}

int reaper_open(struct reaper_options *reaper, struct error *err)
{
    if (!reaper->folder)
        return 0;
    if (mkdir(reaper->made, 0700) && (reaper->temporary || errno != EEXIST))
        return error_set_errno(err, ERR_IO, "job directory %s", reaper->made);
    int folder = open(reaper->made, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return error_set_errno(err, errno == EACCES ? ERR_DENIED : ERR_IO, "job directory %s",
                               reaper->made);
    int code = take_lock(reaper, folder, err);
    close(folder);
    return code;
}

/* ---- the end ---- */

static bool is_owner(void *context, pid_t pid, const char *mark)
{
    const struct reaper_options *reaper = context;
    (void)mark;
    return pid == reaper->owner || pid == getpid();
}

static void kill_all(const struct reaper_options *reaper, double grace)
{
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%ld.", (long)reaper->owner);
    for (int i = 0; i < (grace + KILL_SECONDS) * 20; i++) {
        if (!marks_kill(prefix, i < grace * 20 ? 0 : SIGKILL, is_owner, (void *)reaper))
            return;
        nanosleep(&look_again, NULL);
    }
}

static void clean_up(const struct reaper_options *reaper)
{
    const char *shell[] = {"sh", "-c", reaper->cleanup, "sh", reaper->made, NULL};
    const char *rm[] = {"rm", "-rf", "--", reaper->made, NULL};
    const struct spawn spawn = {
        .words = reaper->temporary ? rm : shell, .in = -1, .out = -1, .err = -1};
    pid_t pid;
    if ((reaper->temporary || reaper->cleanup) && !spawn_program(&spawn, &pid))
        reaper_await(pid, KILL_SECONDS);
}

/* ---- the reaper's own process ---- */

int reaper_detach(struct reaper_options *reaper, pid_t *pid, struct error *err)
{
    int ready[2];
    char byte;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ready) || (*pid = fork()) < 0)
        return error_set_errno(err, ERR_OS, "a reaper");
    close(ready[!!*pid]);
    if (!*pid) {
        /* Once there is a folder, signals to the caller's group must not come here. It is no error
         * if the caller cannot be told: it has ended, and there is only more to do. */
        setsid();
        int code = reaper_open(reaper, err);
        if (!code)
            send(ready[1], "", 1, MSG_NOSIGNAL);
        close(ready[1]);
        return code;
    }
    bool is_ready = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    if (is_ready)
        return 0;
    /* The reaper has failed, or was killed: then no other process knows of the folder. */
    int status;
    if (waitpid(*pid, &status, 0) == *pid && WIFEXITED(status))
        return err->code = WEXITSTATUS(status);
    if (reaper->temporary)
        clean_up(reaper);
    return error_set(err, ERR_OS, "the job's reaper was killed");
}

void reaper_run(const struct reaper_options *reaper)
{
    sigset_t all;
    int owner = pidfd_of(reaper->owner);
    setsid();
    /* Readers of a pipe that the reaper has inherited must not have to wait for the reaper's end.
     */
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2; fd++)
        dup2(null, fd);
    for (int fd = 3; fd < 1024; fd++)
        if (fd != reaper->lock && fd != owner)
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
    kill_all(reaper, wait[1].revents ? 0 : GRACE_SECONDS);
    control_remove(reaper->made);
    clean_up(reaper);
    if (reaper->lock >= 0 && ftruncate(reaper->lock, 0))
        return; /* it still names the dead owner */
}

/* ---- the reaper as others see it ---- */

bool reaper_has_ended(int pidfd)
{
    struct pollfd wait = {.fd = pidfd, .events = POLLIN};
    return pidfd < 0 || poll(&wait, 1, 0) > 0;
}

/* ---- the owner ---- */

/* Starts the reaper and returns a descriptor of its stdout; -1: it cannot be started. */
static int run_reaper(const struct reaper_options *reaper, const char *program, pid_t *pid)
{
    char owner[32];
    const char *words[10] = {program, "--reaper", owner, "--detach"};
    int n = 4, ends[2];
    snprintf(owner, sizeof owner, "%ld", (long)reaper->owner);
    if (reaper->folder) {
        words[n++] = "--job";
        words[n++] = reaper->folder;
    }
    if (reaper->cleanup) {
        words[n++] = "--cleanup";
        words[n++] = reaper->cleanup;
    }
    if (pipe2(ends, O_CLOEXEC))
        return -1;
    const struct spawn spawn = {.words = words, .in = -1, .out = ends[1], .err = STDERR_FILENO};
    errno = spawn_program(&spawn, pid);
    close(ends[1]);
    if (*pid)
        return ends[0];
    close(ends[0]);
    return -1;
}

/* A detached reaper is the child of a process that ends once the reaper has the lock. */
int reaper_start(const struct reaper_options *reaper, const char *program, struct error *err)
{
    pid_t child;
    char text[32] = "";
    int status, said = run_reaper(reaper, program, &child);
    if (said < 0) {
        error_set_errno(err, ERR_OS, "a reaper");
        return -1;
    }
    struct pollfd wait = {.fd = said, .events = POLLIN};
    bool has_said = poll(&wait, 1, RELEASE_MILLISECONDS) > 0;
    ssize_t n = has_said ? read(said, text, sizeof text - 1) : 0;
    close(said);
    status = reaper_await(child, has_said ? RELEASE_MILLISECONDS / 1e3 : 0);
    if (n > 0)
        return pidfd_of((pid_t)atol(text));
    err->code = WIFEXITED(status) ? WEXITSTATUS(status) : ERR_OS;
    return -1;
}

bool reaper_release(int pidfd)
{
    struct pollfd wait = {.fd = pidfd, .events = POLLIN};
    if (pidfd < 0 || pidfd_kill(pidfd, SIGUSR1) || poll(&wait, 1, RELEASE_MILLISECONDS) > 0)
        return true;
    pidfd_kill(pidfd, SIGKILL);
    poll(&wait, 1, RELEASE_MILLISECONDS);
    return false;
}

int reaper_await(pid_t child, double seconds)
{
    int status = 0, pidfd = pidfd_of(child);
    struct pollfd wait = {.fd = pidfd, .events = POLLIN};
    if (pidfd >= 0 && poll(&wait, 1, (int)(seconds * 1000)) <= 0)
        pidfd_kill(pidfd, SIGKILL);
    close_if_open(pidfd);
    waitpid(child, &status, 0);
    return status;
}

/* ---- processes that look for the owner ---- */

/* Sets the owner that the folder's lock names; 0: none. Returns false if the lock is not held. */
static bool is_held(const char *folder, pid_t *owner)
{
    struct str path = STR_INIT;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char text[32] = "";
    str_printf(&path, "%s/lock", folder);
    int fd = open(path.data, O_RDONLY | O_CLOEXEC);
    bool held = fd >= 0 && read(fd, text, sizeof text - 1) > 0 && !fcntl(fd, F_OFD_GETLK, &lock) &&
                lock.l_type != F_UNLCK;
    close_if_open(fd);
    str_release(&path);
    *owner = (pid_t)atol(text);
    return held;
}

/* The process ID is the owner's if the process still has the folder after its pidfd was opened. */
int reaper_owner(const char *folder, pid_t *owner)
{
    for (int i = 0; i < SUCCESSOR_SECONDS * 20; i++) {
        pid_t first;
        is_held(folder, &first);
        int fd = first ? pidfd_of(first) : -1;
        if (reaper_has_ended(fd))
            i = SUCCESSOR_SECONDS * 20;
        else if (is_held(folder, owner) && *owner == first)
            return fd;
        close_if_open(fd);
        nanosleep(&look_again, NULL);
    }
    return -1;
}
