/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/channel/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int memfd_new(const char *name, size_t bytes)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || (!ftruncate(fd, (off_t)bytes) && !fcntl(fd, F_ADD_SEALS, SEALS)))
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

bool memfd_is_sealed(int fd, size_t *bytes)
{
    struct stat status;
    int seals = fcntl(fd, F_GET_SEALS);
    if (fstat(fd, &status) || seals < 0 || (seals & F_SEAL_SHRINK) != F_SEAL_SHRINK)
        return false;
    *bytes = (size_t)status.st_size;
    return true;
}

int memfd_open(int64_t pid, int64_t fd, size_t *bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)pid, (long long)fd);
    int opened = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (opened < 0 || memfd_is_sealed(opened, bytes))
        return opened;
    close(opened);
    return -1;
}
