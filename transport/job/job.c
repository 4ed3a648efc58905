/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/job/job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/patience.h"
#include "base/str.h"
#include "transport/channel/address.h"

#define KEY_BYTES 32

/* ---- its files ---- */

/* Converts "ps:0", ".pid" to "ps-0.pid". */
static char *job_file(const char *task, const char *what)
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

/* Reads a small file as text, without its trailing newline; NULL with the error set, ERR_NOINPUT if
 * it does not exist. The caller frees it. */
static char *job_read(const struct job *job, const char *name, struct error *err)
{
    struct str text = STR_INIT;
    char bytes[4096];
    ssize_t n = -1;
    int fd = openat(job->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    while (fd >= 0 && (n = read(fd, bytes, sizeof bytes)) > 0)
        str_append_bytes(&text, bytes, (size_t)n);
    if (n < 0)
        fail(job, name, err);
    close_if_open(fd);
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

/* Replaces the file atomically, through a temporary name. */
static int job_write(const struct job *job, const char *name, mode_t mode, const char *text,
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

/* Returns whether a process holds the lock of the pid file. */
static bool job_is_locked(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

/* ---- the folder ---- */

static int open_folder(struct job *job, const char *folder, struct error *err)
{
    struct stat status;
    *job = (struct job){.fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (job->fd < 0)
        return error_set_errno(err, errno == ENOENT || errno == ENOTDIR ? ERR_NOINPUT : ERR_DENIED,
                               "job directory %s", folder);
    job->folder = mem_strdup(folder);
    if (fstat(job->fd, &status))
        return error_set_errno(err, ERR_OS, "job directory %s", folder);
    if (status.st_uid != geteuid())
        return error_set(err, ERR_DENIED, "job directory %s belongs to somebody else", folder);
    if (status.st_mode & 077)
        return error_set(err, ERR_DENIED, "job directory %s is open to others: chmod 700 %s",
                         folder, folder);
    return 0;
}

void job_close(struct job *job)
{
    if (job->folder && job->fd >= 0)
        close(job->fd);
    mem_free(job->folder);
    job->folder = NULL;
}

static bool has_file(const struct job *job, const char *name)
{
    return !faccessat(job->fd, name, F_OK, 0);
}

static int refuse_without_job(const struct job *job, struct error *err)
{
    return error_set(err, ERR_NOINPUT, "job directory %s: no job runs there (no cluster file)",
                     job->folder);
}

int job_open(struct job *job, const char *folder, struct error *err)
{
    int code = open_folder(job, folder, err);
    if (!code && !has_file(job, "cluster"))
        code = refuse_without_job(job, err);
    if (code)
        job_close(job);
    return code;
}

/* ---- leftovers of earlier processes ---- */

static const char *const temporary_endings[] = {".pid",     ".sock",   ".starts",
                                                ".journal", ".claims", NULL};

static bool is_of_running(const char *name)
{
    for (const char *const *ending = temporary_endings; *ending; ending++)
        if (str_ends(name, *ending))
            return true;
    return !strcmp(name, "cluster") || !strcmp(name, "key") || !strcmp(name, "holders") ||
           *name == '.';
}

static int check_is_over(const struct job *job, const char *name, struct error *err)
{
    int fd = str_ends(name, ".pid") ? openat(job->fd, name, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return 0;
    if (job_is_locked(fd))
        error_set(err, ERR_RETRY, "job directory %s: the process of %s lives", job->folder, name);
    close(fd);
    return err->code;
}

/* Calls `each` for every name in the folder except "." and "..", until one fails. */
static int for_each(const struct job *job,
                    int (*each)(const struct job *, const char *, struct error *),
                    struct error *err)
{
    DIR *all = opendir(job->folder);
    int code = all ? 0 : error_set_errno(err, ERR_IO, "job directory %s", job->folder);
    struct dirent *entry;
    while (!code && (entry = readdir(all)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            code = each(job, entry->d_name, err);
    if (all)
        closedir(all);
    return code;
}

static int remove_of_running(const struct job *job, const char *name, struct error *err)
{
    /* A socket is a killed process's: one that ends normally removes its own. */
    struct stat status;
    bool is_socket =
        !fstatat(job->fd, name, &status, AT_SYMLINK_NOFOLLOW) && S_ISSOCK(status.st_mode);
    if ((is_of_running(name) || is_socket) && unlinkat(job->fd, name, 0) && errno != ENOENT)
        return error_set_errno(err, ERR_IO, "%s/%s", job->folder, name);
    return 0;
}

static int remove_leftovers(const struct job *job, struct error *err)
{
    int code = for_each(job, check_is_over, err);
    return code ? code : for_each(job, remove_of_running, err);
}

int job_end(const char *folder, struct error *err)
{
    struct job job;
    int code = open_folder(&job, folder, err);
    /* A job_create that was killed may have left a key without a cluster. */
    if (!code && !has_file(&job, "cluster") && !has_file(&job, "key"))
        code = refuse_without_job(&job, err);
    if (!code)
        code = remove_leftovers(&job, err);
    job_close(&job);
    return code;
}

static int write_key(const struct job *job, struct error *err)
{
    unsigned char bytes[KEY_BYTES];
    char text[2 * KEY_BYTES + 2] = "";
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return error_set_errno(err, ERR_OS, "getrandom");
    for (size_t i = 0; i < sizeof bytes; i++) {
        text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    text[2 * KEY_BYTES] = '\n';
    int code = job_write(job, "key", 0600, text, err);
    explicit_bzero(text, sizeof text);
    explicit_bzero(bytes, sizeof bytes);
    return code;
}

int job_create(struct job *job, const char *folder, const char *cluster, struct error *err)
{
    if (mkdir(folder, 0700) && errno != EEXIST)
        return error_set_errno(err, errno == EACCES ? ERR_DENIED : ERR_IO, "job directory %s",
                               folder);
    int code = open_folder(job, folder, err);
    if (!code)
        code = remove_leftovers(job, err);
    if (!code)
        code = write_key(job, err);
    if (!code)
        code = job_write(job, "cluster", 0600, cluster, err);
    if (code)
        job_close(job);
    return code;
}

/* Checks both sockets of each process, to report a path that is too long before any is created. */
static int check_sockets(const struct cluster *cluster, const char *folder, struct error *err)
{
    vec_each(task, &cluster->tasks) {
        struct str control = STR_INIT;
        struct address address;
        str_printf(&control, "unix:%s-%d.sock", task->job, task->index);
        if (!address_parse(&address, control.data, folder, err) &&
            str_starts(task->address, "unix:"))
            address_parse(&address, task->address, folder, err);
        str_release(&control);
        if (err->code)
            return error_prefix(err, "job directory: ");
    }
    return 0;
}

int job_begin(const char *folder, const char *text, const char *name, struct error *err)
{
    struct job job;
    struct cluster cluster = {0};
    int code = cluster_parse(&cluster, text, name, err);
    if (!code)
        code = check_sockets(&cluster, folder, err);
    if (!code)
        code = job_create(&job, folder, text, err);
    if (!code)
        job_close(&job);
    cluster_release(&cluster);
    return code;
}

/* ---- the cluster file ---- */

int job_cluster(const struct job *job, struct cluster *cluster, struct error *err)
{
    char *text = job_read(job, "cluster", err), *name = job_path(job, "", "cluster");
    int code = text ? cluster_parse(cluster, text, name, err) : err->code;
    mem_free(text);
    mem_free(name);
    return code;
}

char *job_holders(const struct job *job)
{
    struct error missing = ERROR_INIT;
    return job_read(job, "holders", &missing);
}

struct edit {
    const char *task, *address;
    struct str text;
    bool found;
};

static void edit_line(struct edit *edit, const char *line, size_t n)
{
    int task = 0, task_end = 0, from = 0, to = 0;
    char *copy = mem_strndup(line, n);
    bool is_it = sscanf(copy, " task %n%*s%n %n%*s%n", &task, &task_end, &from, &to) >= 0 && to &&
                 (size_t)(task_end - task) == strlen(edit->task) &&
                 !strncmp(copy + task, edit->task, strlen(edit->task));
    if (is_it)
        str_printf(&edit->text, "%.*s%s%s\n", from, copy, edit->address, copy + to);
    else
        str_printf(&edit->text, "%s\n", copy);
    edit->found |= is_it;
    mem_free(copy);
}

int job_publish(struct job *job, const char *task, const char *address, struct error *err)
{
    struct edit edit = {.task = task, .address = address};
    if (patience_lock(job->fd, job->folder, err)) /* tasks publish concurrently */
        return error_prefix(err, "job directory ");
    char *text = job_read(job, "cluster", err);
    for (const char *line = text, *end; line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        edit_line(&edit, line, end ? (size_t)(end - line) : strlen(line));
    }
    int code = text ? 0 : err->code;
    if (!code && !edit.found)
        code = error_set(err, ERR_CONFIG, "%s/cluster: no task %s", job->folder, task);
    if (!code)
        code = job_write(job, "cluster", 0600, str_text(&edit.text), err);
    flock(job->fd, LOCK_UN);
    str_release(&edit.text);
    mem_free(text);
    return code;
}

/* ---- a process of the job ---- */

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
    close_if_open(fd);
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
