/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <signal.h>
#include <stdbool.h>

/* Room for the widest registers that the kernel saves (AMX: 11 KiB) and for the handler itself. */
#define SIGNAL_STACK_BYTES 32768

int thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
    pthread_attr_t attr;
    size_t bytes;
    int code = pthread_attr_init(&attr);
    if (code)
        return code;
    if (!pthread_attr_getstacksize(&attr, &bytes) && bytes < THREAD_STACK_BYTES)
        code = pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
    if (!code) {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        code = pthread_create(thread, &attr, run, argument);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attr);
    return code;
}

void thread_use_signal_stack(void)
{
    static _Thread_local char stack[SIGNAL_STACK_BYTES];
    static _Thread_local bool has_one;
    stack_t present, own = {.ss_sp = stack, .ss_size = sizeof stack};
    if (!has_one && !sigaltstack(NULL, &present) && present.ss_flags & SS_DISABLE)
        sigaltstack(&own, NULL);
    has_one = true;
}
