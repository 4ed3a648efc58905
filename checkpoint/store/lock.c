/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "base/time.h"

#define PAUSE_SECONDS 0.02
#define OWNER_BYTES 128

static void say_owner(int fd, const char *owner)
{
    char text[OWNER_BYTES];
    int n = snprintf(text, sizeof text, "process %ld, %s\n", (long)getpid(), owner);
    if (n >= OWNER_BYTES)
        n = OWNER_BYTES - 1;
    /* only a help for people: a full disk must not keep anybody from working */
    if (ftruncate(fd, 0) || pwrite(fd, text, (size_t)n, 0) < 0)
        errno = 0;
}

static int is_taken(int fd, double waited, struct error *err)
{
    char text[OWNER_BYTES] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    size_t length = n > 0 ? strcspn(text, "\n") : 0;
    text[length] = '\0';
    if (!length || !str_is_printable(text, length))
        snprintf(text, sizeof text, "another process");
    return error_set(err, ERR_RETRY, "locked by %s%s", text,
                     waited > 0 ? "; waited until --lock-wait was over" : "; --lock-wait waits");
}

int lock_take(const char *path, const char *owner, double seconds, int *fd, struct error *err)
{
    const struct timespec pause = {.tv_nsec = (long)(PAUSE_SECONDS * 1e9)};
    double deadline = time_now() + seconds;
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*fd < 0)
        return error_set_errno(
            err, errno == EACCES || errno == EROFS || errno == EPERM ? ERR_DENIED : ERR_IO,
            "cannot be written to");
    while (flock(*fd, LOCK_EX | LOCK_NB)) {
        int code = 0;
        if (errno != EWOULDBLOCK && errno != EINTR)
            code = error_set_errno(err, ERR_IO, "locking");
        else if (seconds >= 0 && time_now() >= deadline)
            code = is_taken(*fd, seconds, err);
        if (code) {
            close(*fd);
            *fd = -1;
            return code;
        }
        nanosleep(&pause, NULL);
    }
    say_owner(*fd, owner);
    return 0;
}

void lock_release(int fd)
{
    if (fd >= 0)
        close(fd);
}
