/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of our own, and what a thread needs where signals are handled.
 */
#ifndef TF_BASE_THREAD_H
#define TF_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create with no attributes, but for two things. The stack has as many bytes at least,
 * as some C libraries (musl: 128 KiB) give a thread less than what kernels and parsers may take.
 * All signals are blocked in it: they are for the thread that waits for them. */
#define THREAD_STACK_BYTES ((size_t)1 << 20)

int thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

/* Gives the calling thread a stack for handlers of signals, unless it has one. Handlers that may
 * interrupt a kernel ask for it (SA_ONSTACK): oneDNN's float32 products of more than 8192 terms
 * point the stack pointer to their memory on the heap while they run, and a handler on that stack
 * would write over whatever lies before it. */
void thread_use_signal_stack(void);

#endif
