/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/str.h"
#include "transport/job/job_private.h"

/* Reads the only number in a small file; 0: there is none. */
static int64_t read_number(const struct job *job, const char *task, const char *what)
{
    struct error none = ERROR_INIT;
    int64_t value = 0;
    char *name = job_file(task, what), *text = job_read(job, name, &none);
    if (!text || !str_to_int64(text, &value) || value < 0)
        value = 0;
    mem_free(text);
    mem_free(name);
    return value;
}

static int count_start(struct job *job, struct job_slot *slot, struct error *err)
{
    char text[32], *name = job_file(slot->task, ".starts");
    slot->incarnation = (uint64_t)read_number(job, slot->task, ".starts") + 1;
    snprintf(text, sizeof text, "%" PRIu64 "\n", slot->incarnation);
    int code = job_write(job, name, 0600, text, err);
    mem_free(name);
    return code;
}

static bool is_at(const struct job *job, const char *name, int fd)
{
    struct stat ours, there;
    return !fstat(fd, &ours) && !fstatat(job->fd, name, &there, AT_SYMLINK_NOFOLLOW) &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

/* Locks the file that has the name now: a process that ends well removes its file. */
static int lock_file(struct job *job, const char *name, struct job_slot *slot, struct error *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    for (;;) {
        slot->fd = openat(job->fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (slot->fd < 0)
            return error_set_errno(err, ERR_IO, "%s/%s", job->folder, name);
        if (fcntl(slot->fd, F_OFD_SETLK, &lock)) {
            bool taken = errno == EAGAIN || errno == EACCES;
            if (!taken)
                error_set_errno(err, ERR_OS, "%s/%s", job->folder, name);
            close(slot->fd);
            return taken ? error_set(err, ERR_RETRY, "%s: %s runs already, as pid %" PRId64,
                                     job->folder, slot->task, read_number(job, slot->task, ".pid"))
                         : err->code;
        }
        if (is_at(job, name, slot->fd))
            return 0;
        close(slot->fd);
    }
}

static void remove_file(struct job *job, const char *task, const char *what)
{
    char *name = job_file(task, what);
    unlinkat(job->fd, name, 0);
    mem_free(name);
}

int job_enter(struct job *job, const char *task, struct job_slot *slot, struct error *err)
{
    char text[32], *name = job_file(task, ".pid");
    *slot = (struct job_slot){.fd = -1};
    snprintf(slot->task, sizeof slot->task, "%s", task);
    int code = lock_file(job, name, slot, err);
    if (!code) {
        remove_file(job, task, ".sock"); /* left by a killed process */
        if (ftruncate(slot->fd, 0))      /* the old process ID comes off first */
            code = error_set_errno(err, ERR_IO, "%s/%s", job->folder, name);
        if (!code)
            code = count_start(job, slot, err);
        int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
        if (!code && pwrite(slot->fd, text, (size_t)n, 0) != n)
            code = error_set_errno(err, ERR_IO, "%s/%s", job->folder, name);
        if (code)
            close(slot->fd);
    }
    mem_free(name);
    return code;
}

void job_leave(struct job *job, struct job_slot *slot)
{
    remove_file(job, slot->task, ".sock");
    remove_file(job, slot->task, ".pid");
    close(slot->fd); /* last, as it releases the lock: until then the task is taken */
}

/* ---- state of a task's process ---- */

static bool has_socket(const struct job *job, const char *name)
{
    struct stat status;
    return !fstatat(job->fd, name, &status, 0) && S_ISSOCK(status.st_mode);
}

int job_look(const struct job *job, const char *task, struct job_process *process,
             struct error *err)
{
    char *name = job_file(task, ".pid");
    int fd = openat(job->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int code =
        fd < 0 && errno != ENOENT ? error_set_errno(err, ERR_IO, "%s/%s", job->folder, name) : 0;
    *process = (struct job_process){.alive = fd >= 0 && job_is_locked(fd),
                                    .pid = (pid_t)read_number(job, task, ".pid"),
                                    .incarnation = (uint64_t)read_number(job, task, ".starts")};
    process->alive = process->alive && process->pid; /* else it is about to take the slot */
    if (fd >= 0)
        close(fd);
    mem_free(name);
    name = job_file(task, ".sock");
    process->listens = process->alive && has_socket(job, name);
    mem_free(name);
    return code;
}

const char *job_lacks(const struct job *job, const struct cluster_task *task)
{
    struct error none = ERROR_INIT;
    struct job_process process;
    if (job_look(job, task->name, &process, &none))
        return none.code == ERR_DENIED ? "its pid file is not ours" : "its pid file cannot be read";
    if (process.pid && !process.alive)
        return "its process has died";
    if (str_ends(task->address, ":0"))
        return process.pid ? "it has not said where it listens" : "not started";
    if (str_starts(task->address, "unix:") && !has_socket(job, task->address + 5))
        return process.pid ? "it has not said where it listens" : "not started";
    return NULL;
}
