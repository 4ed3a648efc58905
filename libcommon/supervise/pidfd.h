/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors of processes: a process ID may be reused, a descriptor refers to one process. Uses
 * system calls, as C libraries have these functions only since recently, or not at all.
 */
#ifndef TF_SUPERVISE_PIDFD_H
#define TF_SUPERVISE_PIDFD_H

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Returns -1 with errno, as the system call: ESRCH if there is no such process. The descriptor is
 * closed on exec, and is readable once the process has ended. */
static inline int pidfd_of(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static inline int pidfd_kill(int fd, int signal)
{
    return (int)syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
}

#endif
