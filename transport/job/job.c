/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/job/job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/patience.h"
#include "base/str.h"
#include "base/words.h"
#include "transport/channel/address.h"
#include "transport/job/job_private.h"

#define KEY_BYTES 32
#define CLUSTER_BYTES ((size_t)64 << 20)

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

int job_begin_text(const char *folder, const char *text, const char *name, struct error *err)
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

int job_begin(const char *folder, const char *cluster_path, struct error *err)
{
    struct str text = STR_INIT;
    int code = file_read(cluster_path, CLUSTER_BYTES, &text, err);
    if (!code)
        code = job_begin_text(folder, str_text(&text), cluster_path, err);
    str_release(&text);
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

int job_check_shards_keep(const struct job *job, struct error *err)
{
    struct error missing = ERROR_INIT;
    char *holders = job_read(job, "holders", &missing);
    if (holders && strcmp(holders, "shards") && strcmp(holders, "none"))
        error_set(err, ERR_CONFIG,
                  "job directory %s: the variables are the workers', and the first of these saves "
                  "them, to the store of the job's --save; shards have none",
                  job->folder);
    mem_free(holders);
    return err->code;
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
