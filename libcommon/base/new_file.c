/* SPDX-License-Identifier: Apache-2.0 */
#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static void folder_of(const struct new_file *file, char folder[PATH_MAX])
{
    char copy[PATH_MAX];
    memcpy(copy, file->path, sizeof copy);
    const char *name = dirname(copy);
    memmove(folder, name, strlen(name) + 1);
}

int new_file_open(struct new_file *file, const char *path, struct error *err)
{
    struct stat old;
    bool exists = !stat(path, &old);
    file->fd = -1;
    file->exists = 0;
    file->nameless = false;
    if (exists && S_ISDIR(old.st_mode))
        return error_set(err, ERR_DATA, "%s: is a directory", path);
    file->direct = exists && !S_ISREG(old.st_mode);
    char *real = exists ? realpath(path, NULL) : NULL;
    const char *name = real ? real : path;
    size_t n = strlen(name);
    /* leave room for the temporary name, which is longer */
    if (n + 32 >= PATH_MAX) {
        free(real);
        return error_set(err, ERR_IO, "%s: the name is too long", path);
    }
    memcpy(file->path, name, n + 1);
    free(real);
    const char *slash = strrchr(file->path, '/');
    int head = slash ? (int)(slash + 1 - file->path) : 0;
    snprintf(file->temporary, sizeof file->temporary, "%.*s.%.200s.%ld.tmp", head, file->path,
             file->path + head, (long)getpid());

    if (file->direct)
        file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    else {
        /* Where the file system allows it, the file has no name until it is complete: a process
         * that is killed leaves nothing behind. */
        char folder[PATH_MAX];
        folder_of(file, folder);
        if (!access("/proc/self/fd", X_OK)) /* needed to link it later */
            file->fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
        file->nameless = file->fd >= 0;
    }
    if (file->fd < 0 && !file->direct) {
        /* The name can be guessed: an existing file, be it a link planted in a shared folder or the
         * leftover of a killed process, is removed and never written to. */
        const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
        unlink(file->temporary);
        file->exists = 1; /* set beforehand, so that no signal finds the file unmarked */
        file->fd = open(file->temporary, flags, 0666);
        if (file->fd < 0)
            file->exists = 0;
    }
    if (file->fd < 0)
        return error_set_errno(err, file_write_error_code(), "%s", path);
    /* a replaced file keeps its mode; if that is not permitted, the default is used */
    if (exists && !file->direct && fchmod(file->fd, old.st_mode & 07777))
        errno = 0;
    return 0;
}

int new_file_commit(struct new_file *file, struct error *err)
{
    bool failed = !file->direct && fsync(file->fd);
    if (!failed && !file->direct && file->nameless) {
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
        unlink(file->temporary);
        file->exists = 1;
        failed = linkat(AT_FDCWD, path, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW);
    }
    int cause = errno;
    failed = close(file->fd) || failed;
    file->fd = -1;
    if (!failed && !file->direct && rename(file->temporary, file->path)) {
        failed = true;
        cause = errno;
    }
    if (!failed) {
        file->exists = 0;
        if (!file->direct) {
            char folder[PATH_MAX];
            folder_of(file, folder);
            file_sync_folder(folder);
        }
        return 0;
    }
    new_file_unlink(file);
    errno = cause;
    return error_set_errno(err, ERR_IO, "%s", file->path);
}

void new_file_discard(struct new_file *file)
{
    close(file->fd);
    file->fd = -1;
    new_file_unlink(file);
}

void new_file_unlink(struct new_file *file)
{
    if (file->exists)
        unlink(file->temporary);
    file->exists = 0;
}
