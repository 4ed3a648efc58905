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
#include "base/patience.h"
#include "base/str.h"

#define PAUSE_SECONDS 0.02
#define OWNER_BYTES 128

/* Takes one of the two locks. */
static int wait_lock(int fd, const struct lock_request *request, struct patience *patience,
                     int text_fd, struct error *err)
{
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return error_set_errno(err, ERR_IO, "locking");
        /* A process that holds the lock for long is named, and a signal ends the wait. */
        const struct timespec pause = {.tv_nsec = (long)(PAUSE_SECONDS * 1e9)};
        char owner[OWNER_BYTES];
        enum patience_news news = patience_look(patience);
        if (news != PATIENCE_WAIT) {
            /* The holder: "process 4120, tf-ckpt prune". */
            ssize_t n = pread(text_fd, owner, OWNER_BYTES - 1, 0);
            owner[n > 0 ? n : 0] = '\0';
            owner[strcspn(owner, "\n")] = '\0';
            if (!*owner || !str_is_printable(owner, strlen(owner)))
                snprintf(owner, OWNER_BYTES, "another process");
        }
        if (news == PATIENCE_OVER) {
            if (patience->seconds > 0)
                return error_set(err, ERR_RETRY, "locked by %s; waited %g s", owner,
                                 patience->seconds);
            return error_set(err, ERR_RETRY, "locked by %s; --lock-wait waits", owner);
        }
        if (news == PATIENCE_ENDS)
            return error_set(err, ERR_CANCELLED, "locked by %s; interrupted while waiting for it",
                             owner);
        if (news == PATIENCE_TELL)
            patience_tell(patience, "waiting for the lock of %s, held by %s", request->name, owner);
        nanosleep(&pause, NULL);
    }
    return 0;
}

int lock_take(const struct lock_request *request, int *fd, struct error *err)
{
    struct patience patience = patience_begin(request->seconds, request->cancelled);
    *fd = open(request->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*fd < 0)
        return error_set_errno(err, file_write_error_code(), "cannot be written to");
    if (wait_lock(*fd, request, &patience, *fd, err)) {
        close(*fd);
        *fd = -1;
        return err->code;
    }
    /* text left by a killed process does not name the holder of the data's lock */
    if (ftruncate(*fd, 0) || wait_lock(request->data_fd, request, &patience, *fd, err)) {
        if (!err->code)
            error_set_errno(err, ERR_IO, "locking");
        lock_release(*fd);
        *fd = -1;
        return err->code;
    }
    char text[OWNER_BYTES];
    int n = snprintf(text, sizeof text, "process %ld, %s\n", (long)getpid(), request->owner);
    if (n >= OWNER_BYTES)
        n = OWNER_BYTES - 1;
    /* the text only helps people: a full disk must not prevent work */
    if (ftruncate(*fd, 0) || pwrite(*fd, text, (size_t)n, 0) < 0)
        errno = 0;
    return 0;
}

void lock_release(int fd)
{
    if (fd < 0)
        return;
    if (ftruncate(fd, 0)) /* or it would look like a stale lock between two saves */
        errno = 0;
    close(fd);
}
