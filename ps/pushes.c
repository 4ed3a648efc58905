/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/pushes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/str.h"
#include "resource/push.h"

#define BYTES (PUSHES_WORKERS * sizeof(uint64_t))

static int fail(const char *path, struct error *err)
{
    return error_set_errno(err, file_write_error_code(), "%s", path);
}

void pushes_write(struct pushes *pushes, int worker, int64_t count)
{
    atomic_store(&pushes->counts[worker], push_count_seal(worker, count));
}

int64_t pushes_read(const struct pushes *pushes, int worker)
{
    return push_count_open(worker, atomic_load(&pushes->counts[worker]));
}

static bool is_empty(const struct pushes *pushes)
{
    for (int i = 0; i < PUSHES_WORKERS; i++)
        if (atomic_load(&pushes->counts[i]))
            return false;
    return true;
}

/* The space is taken first: a page that the disk has no room for would end the process. */
static int map(struct pushes *pushes, int fd, const char *path, struct error *err)
{
    int failed = posix_fallocate(fd, 0, BYTES);
    if (failed) {
        errno = failed;
        return fail(path, err);
    }
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return fail(path, err);
    pushes->counts = memory;
    if (is_empty(pushes)) /* or its maker was killed before it came as far */
        for (int i = 0; i < PUSHES_WORKERS; i++)
            pushes_write(pushes, i, 0);
    return 0;
}

int pushes_open(struct pushes *pushes, const char *folder, struct error *err)
{
    struct str path = STR_INIT;
    pushes->counts = NULL;
    str_printf(&path, "%s/pushes", folder);
    int fd = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    int code = fd < 0 ? fail(path.data, err) : map(pushes, fd, path.data, err);
    if (fd >= 0)
        close(fd);
    str_release(&path);
    return code;
}

void pushes_close(struct pushes *pushes)
{
    if (pushes->counts)
        munmap((void *)(uintptr_t)pushes->counts, BYTES);
    pushes->counts = NULL;
}
