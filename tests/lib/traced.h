/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: a child that is killed at its n-th system call, or has that call fail.
 */
#ifndef TF_TESTS_LIB_TRACED_H
#define TF_TESTS_LIB_TRACED_H

#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/unit.h"

#define TRACED_KILLED (-1)
#define TRACED_STRUCK 0x100 /* added to the exit status: a call was made to fail */

static inline bool traced_works(void)
{
    int status;
    pid_t pid = fork();
    if (!pid)
        _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? 1 : 0);
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Only the thread that runs `work` is traced, not those that it starts. */
static inline pid_t traced_start(int (*work)(void *context), void *context)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(work(context));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSTOPPED(status));
    ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD));
    return pid;
}

/* Continues to the next entry or exit of a system call. False: it has ended, with *code. */
static inline bool traced_next(pid_t pid, int *code)
{
    int status;
    ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80))
        return true;
    if (!WIFEXITED(status))
        fail_msg("the child ended itself: %#x", (unsigned)status);
    *code = WEXITSTATUS(status);
    return false;
}

/* Kills the child at its n-th stop, of which each call has two, and returns TRACED_KILLED; if the
 * child ends before that, returns its code. */
static inline int traced_kill(int (*work)(void *context), void *context, int n)
{
    int status, code;
    pid_t pid = traced_start(work, context);
    while (n-- > 0)
        if (!traced_next(pid, &code))
            return code;
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) == pid && !WIFEXITED(status) && !WIFSIGNALED(status))
        ;
    return TRACED_KILLED;
}

#ifdef __x86_64__

static inline bool traced_is_one_of(long call, const long *calls)
{
    while (*calls >= 0 && *calls != call)
        calls++;
    return *calls >= 0;
}

/* Makes the n-th of the listed calls (-1 ends the list) fail with the error, instead of running.
 * Returns the result of `work`, with TRACED_STRUCK if there was such a call. */
static inline int traced_fail(int (*work)(void *context), void *context, const long *calls, int n,
                              int error)
{
    struct user_regs_struct registers;
    int code, struck = 0;
    pid_t pid = traced_start(work, context);
    while (traced_next(pid, &code)) { /* the entry, then the exit */
        ptrace(PTRACE_GETREGS, pid, NULL, &registers);
        bool strikes = traced_is_one_of((long)registers.orig_rax, calls) && --n == 0;
        if (strikes) {
            registers.orig_rax = UINT64_MAX;
            ptrace(PTRACE_SETREGS, pid, NULL, &registers);
        }
        if (!traced_next(pid, &code))
            break;
        if (strikes) {
            registers.rax = (unsigned long long)-(long long)error;
            ptrace(PTRACE_SETREGS, pid, NULL, &registers);
            struck = TRACED_STRUCK;
        }
    }
    return code | struck;
}

#endif

#endif
