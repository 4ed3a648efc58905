/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int file_read(const char *path, size_t most, struct str *text, struct error *err)
{
    FILE *file = fopen(path, "re");
    char block[4096];
    size_t n;
    int code = 0;
    if (!file)
        return error_set_errno(err, ERR_NOINPUT, "%s", path);
    while (!code && (n = fread(block, 1, sizeof block, file)) > 0) {
        str_append_bytes(text, block, n);
        if (text->n > most)
            code = error_set(err, ERR_DATA, "%s: more than %zu MiB", path, most >> 20);
    }
    if (!code && ferror(file)) /* a directory can be opened, but not read */
        code = error_set_errno(err, errno == EISDIR ? ERR_DATA : ERR_NOINPUT, "%s", path);
    fclose(file);
    return code;
}

int file_error_code(void)
{
    return errno == ENOENT || errno == ENOTDIR ? ERR_NOINPUT : file_write_error_code();
}

int file_write_error_code(void)
{
    return errno == EACCES || errno == EPERM || errno == EROFS ? ERR_DENIED : ERR_IO;
}

size_t file_read_part(const char *path, off_t at, void *bytes, size_t n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (at < 0 && (at += lseek(fd, 0, SEEK_END)) < 0)
        at = 0;
    ssize_t got = pread(fd, bytes, n, at);
    close(fd);
    return got > 0 ? (size_t)got : 0;
}

int file_replace(const char *path, mode_t mode, const char *text, size_t n, struct error *err)
{
    struct str new = STR_INIT;
    str_printf(&new, "%s.new", path);
    int fd = open(new.data, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
    bool written = fd >= 0 && !fchmod(fd, mode) && write(fd, text, n) == (ssize_t)n;
    if (!written || rename(new.data, path)) {
        error_set_errno(err, ERR_IO, "%s", path);
        if (fd >= 0)
            unlink(new.data);
    }
    close_if_open(fd);
    str_release(&new);
    return err->code;
}

void file_sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        fsync(fd);
    close_if_open(fd);
}

void close_if_open(int fd)
{
    if (fd >= 0)
        close(fd);
}
