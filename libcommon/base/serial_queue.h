/* SPDX-License-Identifier: Apache-2.0
 *
 * A serial queue: one thread that does pieces of work one after the other. It is for work that
 * waits for locks or disks and so must not run on an event loop's thread.
 */
#ifndef TF_BASE_SERIAL_QUEUE_H
#define TF_BASE_SERIAL_QUEUE_H

#include <stdbool.h>

struct serial_queue;

struct serial_queue *serial_queue_new(void);

/* Adds work, from any thread. `work` is called once, in the order of these calls, and owns
 * `argument`. Returns false, and does nothing, if the queue is being freed. */
bool serial_queue_add(struct serial_queue *queue, void (*work)(void *argument), void *argument);

/* Finishes the remaining work, then ends the thread. */
void serial_queue_free(struct serial_queue *queue);

#endif
