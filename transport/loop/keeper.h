/* SPDX-License-Identifier: Apache-2.0
 *
 * A loop's heartbeat thread: calls short tasks at intervals whether or not the loop runs.
 */
#ifndef TF_TRANSPORT_KEEPER_H
#define TF_TRANSPORT_KEEPER_H

struct keeper;
struct loop;

struct keeper_task {
    void (*call)(void *context); /* in the heartbeat thread; short, and must not block */
    void *context;
    struct keeper_task *next;
};

/* Calls the task every `period` seconds (all tasks use the shortest period of any). */
void keeper_add(struct loop *loop, struct keeper_task *task, double period);

/* When it returns the task is no longer called. Must not be called by the task. */
void keeper_remove(struct loop *loop, struct keeper_task *task);

void keeper_free(struct keeper *keeper);

#endif
