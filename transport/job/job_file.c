/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/str.h"
#include "transport/job/job_private.h"

char *job_file(const char *task, const char *what)
{
    struct str name = STR_INIT;
    for (; *task; task++)
        str_append_char(&name, *task == ':' ? '-' : *task);
    str_append(&name, what);
    return name.data;
}

char *job_path(const struct job *job, const char *task, const char *what)
{
    struct str path = STR_INIT;
    char *name = job_file(task, what);
    str_printf(&path, "%s/%s", job->folder, name);
    mem_free(name);
    return path.data;
}

static int fail(const struct job *job, const char *name, struct error *err)
{
    int code = errno == ENOENT                     ? ERR_NOINPUT
               : errno == EACCES || errno == EPERM ? ERR_DENIED
                                                   : ERR_IO;
    return error_set_errno(err, code, "%s/%s", job->folder, name);
}

char *job_read(const struct job *job, const char *name, struct error *err)
{
    struct str text = STR_INIT;
    char bytes[4096];
    ssize_t n = -1;
    int fd = openat(job->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    while (fd >= 0 && (n = read(fd, bytes, sizeof bytes)) > 0)
        str_append_bytes(&text, bytes, (size_t)n);
    if (n < 0)
        fail(job, name, err);
    if (fd >= 0)
        close(fd);
    if (n < 0) {
        str_release(&text);
        return NULL;
    }
    str_append(&text, "");
    while (text.n && text.data[text.n - 1] == '\n')
        text.data[--text.n] = 0;
    return text.data;
}

static bool write_whole(int fd, const char *text)
{
    size_t n = strlen(text);
    while (n) {
        ssize_t done = write(fd, text, n);
        if (done < 0 && errno != EINTR)
            return false;
        if (done > 0)
            text += done, n -= (size_t)done;
    }
    return true;
}

int job_write(const struct job *job, const char *name, mode_t mode, const char *text,
              struct error *err)
{
    char temporary[128];
    snprintf(temporary, sizeof temporary, ".%.64s.%ld", name, (long)getpid());
    unlinkat(job->fd, temporary, 0);
    int fd = openat(job->fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    bool failed = fd < 0 || !write_whole(fd, text);
    int cause = errno;
    failed = (fd >= 0 && close(fd)) || failed;
    if (!failed && renameat(job->fd, temporary, job->fd, name)) {
        failed = true;
        cause = errno;
    }
    if (!failed)
        return 0;
    unlinkat(job->fd, temporary, 0);
    errno = cause;
    return fail(job, name, err);
}

bool job_is_locked(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}
