/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
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

/* One of the two. */
static int take(int fd, const struct lock_request *request, double deadline, int text_fd,
                struct error *err)
{
    const struct timespec pause = {.tv_nsec = (long)(PAUSE_SECONDS * 1e9)};
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return error_set_errno(err, ERR_IO, "locking");
        if (request->seconds >= 0 && time_now() >= deadline)
            return is_taken(text_fd, request->seconds, err);
        nanosleep(&pause, NULL);
    }
    return 0;
}

int lock_take(const struct lock_request *request, int *fd, struct error *err)
{
    double deadline = time_now() + request->seconds;
    *fd = open(request->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*fd < 0)
        return error_set_errno(err, file_write_error_code(), "cannot be written to");
    if (take(*fd, request, deadline, *fd, err)) {
        close(*fd);
        *fd = -1;
        return err->code;
    }
    /* what a process that was killed left there says nothing of who has the data */
    if (ftruncate(*fd, 0) || take(request->data_fd, request, deadline, *fd, err)) {
        if (!err->code)
            error_set_errno(err, ERR_IO, "locking");
        lock_release(*fd);
        *fd = -1;
        return err->code;
    }
    say_owner(*fd, request->owner);
    return 0;
}

void lock_release(int fd)
{
    if (fd < 0)
        return;
    if (ftruncate(fd, 0)) /* or it would look like a lock that was left, between two saves */
        errno = 0;
    close(fd);
}
