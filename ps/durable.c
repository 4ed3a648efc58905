/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/str.h"

static char *join(const char *folder, const char *before, const char *name, const char *after)
{
    struct str path = STR_INIT;
    str_printf(&path, "%s/%s%s%s", folder, before, name, after);
    return path.data;
}

int durable_fail(const char *path, struct error *err)
{
    int code = errno == EACCES || errno == EPERM || errno == EROFS ? ERR_DENIED : ERR_IO;
    return error_set_errno(err, code, "%s", path);
}

static void release(struct durable *file)
{
    mem_free(file->folder);
    mem_free(file->path);
    mem_free(file->temporary);
}

int durable_open(struct durable *file, const char *folder, const char *name, struct error *err)
{
    char ending[32];
    snprintf(ending, sizeof ending, ".%ld.tmp", (long)getpid());
    *file = (struct durable){.folder = mem_strdup(folder),
                             .path = join(folder, "", name, ""),
                             .temporary = join(folder, ".", name, ending)};
    unlink(file->temporary); /* of a process that was killed and had our pid */
    file->fd = open(file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file->fd >= 0)
        return 0;
    durable_fail(file->path, err);
    release(file);
    return err->code;
}

int durable_sync_folder(const char *folder, struct error *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd))
        durable_fail(folder, err);
    if (fd >= 0)
        close(fd);
    return err->code;
}

int durable_commit(struct durable *file, struct error *err)
{
    int failed = fsync(file->fd) ? errno : 0;
    if (close(file->fd) && !failed)
        failed = errno;
    if (!failed && rename(file->temporary, file->path))
        failed = errno;
    if (failed) {
        unlink(file->temporary);
        errno = failed;
        durable_fail(file->path, err);
    }
    int code = failed ? err->code : durable_sync_folder(file->folder, err);
    release(file);
    return code;
}

void durable_discard(struct durable *file)
{
    close(file->fd);
    unlink(file->temporary);
    release(file);
}
