/* SPDX-License-Identifier: Apache-2.0
 *
 * A loop's heartbeat thread: calls short tasks at intervals whether or not the loop runs.
 */
#ifndef TF_TRANSPORT_HEARTBEAT_H
#define TF_TRANSPORT_HEARTBEAT_H

struct heartbeat;
struct loop;

struct heartbeat_task {
    void (*call)(void *context); /* in the heartbeat thread; short, and must not block */
    void *context;
    struct heartbeat_task *next;
};

/* Calls the task every `period` seconds (all tasks use the shortest period of any). */
void heartbeat_add(struct loop *loop, struct heartbeat_task *task, double period);

/* When it returns the task is no longer called. Must not be called by the task. */
void heartbeat_remove(struct loop *loop, struct heartbeat_task *task);

void heartbeat_free(struct heartbeat *heartbeat);

#endif
