/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors of processes: a number of a process may become another's, a descriptor may not. By
 * system calls, as C libraries have had functions for them for a short time, or have none.
 */
#ifndef TF_SUPERVISE_PIDFD_H
#define TF_SUPERVISE_PIDFD_H

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* -1 with errno, as the system call: ESRCH if there is no such process. It is closed on exec, and
 * can be read from when the process has ended. */
static inline int pidfd_of(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static inline int pidfd_kill(int fd, int signal)
{
    return (int)syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
}

#endif
