/* SPDX-License-Identifier: Apache-2.0
 *
 * The reaper as seen by its owner, and by processes that look for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/spawn.h"
#include "base/str.h"
#include "supervise/pidfd.h"
#include "supervise/reaper.h"

#define RELEASE_MILLISECONDS 15000 /* for its final clean-up */
#define SUCCESSOR_SECONDS 2        /* in which a killed reaper is replaced */

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
    const struct timespec look_again = {.tv_nsec = 50000000};
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
