/* SPDX-License-Identifier: Apache-2.0
 *
 * Deferred work of a thread. A kernel that sends a value may make a kernel of another plan ready,
 * and that one a third. A thread that is in the middle of something defers such work instead of
 * calling it, so that stacks stay flat and no plan is entered while it is busy. Everything here
 * concerns the calling thread only.
 */
#ifndef TF_EXEC_DEFERRED_H
#define TF_EXEC_DEFERRED_H

#include <stdbool.h>

struct device;

/* A piece of work, kept by its owner, who may be gone when `run` returns. */
struct deferred_work {
    void (*run)(struct deferred_work *deferred);
    struct deferred_work *next;
};

/* Runs the work now; or, between deferred_begin and deferred_end, in order, by the outermost
 * end. */
void deferred_run(struct deferred_work *deferred);

void deferred_begin(void);
void deferred_end(void);

/* Runs deferred work before the thread blocks on others that may wait for it. */
bool deferred_is_pending(void);
void deferred_catch_up(void);

/* The same before the thread does something long, unless it is already catching up. */
void deferred_before_long(void);

/* Tells the device that its kernels now run on this thread, with a team of that size, if the thread
 * last ran others. */
void thread_enter_device(struct device *device, int team);

/* Called before the thread begins a step of the device, or takes up another's: gives signal
 * handlers a stack of their own, and enters a device with memory of its own. */
void thread_take_up(struct device *device);

#endif
