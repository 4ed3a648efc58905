/* SPDX-License-Identifier: Apache-2.0
 *
 * Deferred work: what a thread does next. A kernel that sends a value may make a kernel of another
 * plan ready, and that one a third. A thread that is in the middle of something defers such work
 * instead of calling into it, so that stacks stay flat and no plan is entered while it is busy.
 * Everything here belongs to the calling thread alone.
 */
#ifndef TF_EXEC_DEFERRED_H
#define TF_EXEC_DEFERRED_H

#include <stdbool.h>

struct device;

/* A piece of work; lives with its owner, who may be gone when `run` returns. */
struct deferred_work {
    void (*run)(struct deferred_work *deferred);
    struct deferred_work *next;
};

/* Runs it now; between deferred_begin and deferred_end, in order, at the latest when the last ends.
 */
void deferred_run(struct deferred_work *deferred);

void deferred_begin(void);
void deferred_end(void);

/* Before the thread blocks, when those for whom it has put work off may wait for it: does it. */
bool deferred_is_pending(void);
void deferred_catch_up(void);

/* Before the thread does something that takes long: the same, unless it is catching up already. */
void deferred_before_long(void);

/* Tells the device that kernels of it run on this thread now, with a team of that size, if the last
 * were others. */
void thread_enter_device(struct device *device, int team);

/* Before the thread begins a step of the device, or takes up one of others: it handles signals
 * elsewhere than on the stack of kernels, and a device with memory of its own knows of it. */
void thread_take_up(struct device *device);

#endif
