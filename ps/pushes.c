/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/pushes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/file.h"
#include "base/str.h"
#include "resource/push.h"

#define BYTES (PUSHES_WORKERS * sizeof(uint64_t))

void pushes_write(struct pushes *pushes, int worker, int64_t count)
{
    atomic_store(&pushes->counts[worker], push_count_seal(worker, count));
}

int64_t pushes_read(const struct pushes *pushes, int worker)
{
    return push_count_open(worker, atomic_load(&pushes->counts[worker]));
}

int pushes_open(struct pushes *pushes, const char *folder, struct error *err)
{
    struct str path = STR_INIT;
    pushes->counts = NULL;
    str_printf(&path, "%s/pushes", folder);
    int fd = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    /* Allocates the space first: touching a page without disk space would end the process. */
    int code = 0, failed = fd < 0 ? errno : posix_fallocate(fd, 0, BYTES);
    void *memory =
        failed ? MAP_FAILED : mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        errno = failed ? failed : errno;
        code = error_set_errno(err, file_write_error_code(), "%s", path.data);
    } else {
        bool is_empty = true; /* new, or its creator was killed before this */
        pushes->counts = memory;
        for (int i = 0; i < PUSHES_WORKERS; i++)
            is_empty = is_empty && !atomic_load(&pushes->counts[i]);
        for (int i = 0; is_empty && i < PUSHES_WORKERS; i++)
            pushes_write(pushes, i, 0);
    }
    close_if_open(fd);
    str_release(&path);
    return code;
}

void pushes_close(struct pushes *pushes)
{
    if (pushes->counts)
        munmap((void *)(uintptr_t)pushes->counts, BYTES);
    pushes->counts = NULL;
}
