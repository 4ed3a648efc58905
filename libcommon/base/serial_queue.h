/* SPDX-License-Identifier: Apache-2.0
 *
 * A serial queue: work that one thread does, one piece after the other. It is for what the thread
 * of an event loop must not do because it waits for locks or disks.
 */
#ifndef TF_BASE_SERIAL_QUEUE_H
#define TF_BASE_SERIAL_QUEUE_H

#include <stdbool.h>

struct serial_queue;

struct serial_queue *serial_queue_new(void);

/* Adds work, from any thread. `work` is called once, in the order of the calls, and owns what
 * `argument` points to. False: the queue is being freed, and nothing was done. */
bool serial_queue_add(struct serial_queue *queue, void (*work)(void *argument), void *argument);

/* Does the work that is left, then ends the thread. */
void serial_queue_free(struct serial_queue *queue);

#endif
