/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting threads, and what a thread needs where signals are handled.
 */
#ifndef TF_BASE_THREAD_H
#define TF_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create without attributes, except for two things. The stack has at least this size, as
 * some C libraries (musl: 128 KiB) give threads less than kernels and parsers may need. All signals
 * are blocked: they are for the thread that waits for them. */
#define THREAD_STACK_BYTES ((size_t)1 << 20)

int thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

/* Gives the calling thread a stack for signal handlers, unless it has one. Handlers that may
 * interrupt a kernel require it (SA_ONSTACK): oneDNN's float32 products of more than 8192 terms
 * point the stack pointer into heap memory while they run, and a handler on that stack would
 * overwrite the memory below it. */
void thread_use_signal_stack(void);

#endif
