/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of our own.
 */
#ifndef TF_BASE_THREAD_H
#define TF_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create with no attributes, but for the stack: of as many bytes at least, as some C
 * libraries (musl: 128 KiB) give a thread less than what kernels and parsers may take. */
#define THREAD_STACK_BYTES ((size_t)1 << 20)

int thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
