/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels share in a step. Objects that they keep for its duration, stacks and the like: a
 * resource is addressed by a handle that may travel through the graph as a scalar tensor of type
 * resource. And how those that wait for something learn that the step has to stop.
 */
#ifndef TF_EXEC_STEP_H
#define TF_EXEC_STEP_H

#include "exec/plan/plan.h"

/* Hands an object over to the step, which calls `release` on it at its end. Returns its handle,
 * which is never 0. Thread-safe. */
uint64_t step_resource_add(struct step *step, void *object, void (*release)(void *object));

/* The object of a handle, or NULL when there is none of the kind: that is, none that was added with
 * the same `release`. Thread-safe; the object guards itself. */
void *step_resource_get(struct step *step, uint64_t handle, void (*release)(void *object));

/* A kernel that returned PENDING and waits for something that may never come; lives with it. */
struct step_waiter {
    /* Called once, by the thread that stops the step, perhaps while step_on_cancel returns. Calls
     * kernel_done soon, or sees to it, unless the kernel is about to do so anyway. */
    void (*cancelled)(struct step_waiter *waiter, const struct error *reason);
    struct step_waiter *next, **at; /* the step's own */
    bool was_told;
};

/* Has the waiter told when the step stops: it is cancelled, or a kernel of it failed. When it was
 * stopped before, returns that error and the waiter is never told. Thread-safe; may be called with
 * a lock that `cancelled` takes, so that the kernel is known to those who will end its wait, and
 * registered, at once. */
int step_on_cancel(struct step *step, struct step_waiter *waiter, struct error *err);

/* Returns whether the waiter was told. When it returns, the waiter is not being told (except by the
 * thread that calls) and never will be: the memory can go. Call it before kernel_done, and without
 * a lock that `cancelled` takes. Thread-safe. */
bool step_off_cancel(struct step *step, struct step_waiter *waiter);

/* Ends the step with that error, from any thread, though it may take as long as the kernels that
 * run now. Only the first reason counts; a step that is over is left alone. The step must stay
 * until the call returns, even if `done` is called meanwhile. */
void step_cancel(struct step *step, const struct error *reason);

/* ---- for executors ---- */

/* Stops the step as step_cancel does, for a failure of its own. */
void step_stop(struct step *step, const struct error *reason);

/* Why a step has to stop: the code, with the error set. */
int step_stop_reason(struct step *step, struct error *err);

/* The same; 0: it goes on. */
static inline int step_stopped(struct step *step, struct error *err)
{
    if (!atomic_load_explicit(&step->stop.stopped, memory_order_relaxed) &&
        !atomic_load_explicit(&step->cancelled, memory_order_relaxed))
        return 0;
    return step_stop_reason(step, err);
}

/* When nothing of the step runs any more, before it is declared over: releases resources, last made
 * first. The step can be used again, if it was not cancelled. */
void step_end(struct step *step);

#endif
