/* SPDX-License-Identifier: Apache-2.0
 *
 * A loop's second thread: does small things at intervals whether or not the loop runs.
 */
#ifndef TF_TRANSPORT_KEEPER_H
#define TF_TRANSPORT_KEEPER_H

struct keeper;
struct loop;

struct keeper_task {
    void (*call)(void *context); /* in the keeper's thread; short, and it never blocks */
    void *context;
    struct keeper_task *next;
};

/* Calls the task every `period` seconds (the smallest period of all tasks holds for all). */
void keeper_add(struct loop *loop, struct keeper_task *task, double period);

/* When it returns the task is not called any more. Not from within its call. */
void keeper_remove(struct loop *loop, struct keeper_task *task);

void keeper_free(struct keeper *keeper);

#endif
