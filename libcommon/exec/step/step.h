/* SPDX-License-Identifier: Apache-2.0
 *
 * Step-wide state of kernels: objects that they keep while a step runs, such as stacks, addressed
 * by handles that may travel through the graph as scalar tensors of type resource; and how kernels
 * that wait learn that the step has to stop.
 */
#ifndef TF_EXEC_STEP_H
#define TF_EXEC_STEP_H

#include "exec/plan/plan.h"

/* Gives an object to the step, which calls `release` on it at its end. Returns its handle, which is
 * never 0. Thread-safe. */
uint64_t step_resource_add(struct step *step, void *object, void (*release)(void *object));

/* The object of a handle, or NULL if no object with the same `release` has that handle.
 * Thread-safe; the object guards itself. */
void *step_resource_get(struct step *step, uint64_t handle, void (*release)(void *object));

/* The waiter of a kernel that returned PENDING and waits for something that may never come. */
struct step_waiter {
    /* Called once, by the thread that stops the step, perhaps while step_on_cancel returns. It must
     * lead to kernel_done soon, unless the kernel is about to call that anyway. */
    void (*cancelled)(struct step_waiter *waiter, const struct error *reason);
    struct step_waiter *next, **at; /* for the step */
    bool was_told;
};

/* Registers a waiter for the stop of the step, by cancellation or by the failure of a kernel. If
 * the step has stopped before, returns that error, and the waiter is never told. Thread-safe; may
 * be called with a lock that `cancelled` takes, so that the kernel is registered here and made
 * known to those who end its wait at once. */
int step_on_cancel(struct step *step, struct step_waiter *waiter, struct error *err);

/* Returns whether the waiter was told. After it returns, the waiter is not being told (except by
 * the calling thread) and never will be: its memory can be freed. Call it before kernel_done, and
 * without a lock that `cancelled` takes. Thread-safe. */
bool step_off_cancel(struct step *step, struct step_waiter *waiter);

/* Ends the step with that error, from any thread; this may take as long as the kernels that run
 * now. Only the first reason counts; a step that is over is left alone. The step must stay until
 * the call returns, even if `done` is called meanwhile. */
void step_cancel(struct step *step, const struct error *reason);

/* ---- for executors ---- */

/* Stops the step as step_cancel does, for a failure of its own. */
void step_stop(struct step *step, const struct error *reason);

/* Returns the code of the reason why a step has to stop, with the error set. */
int step_stop_reason(struct step *step, struct error *err);

/* As step_stop_reason; 0: the step goes on. */
static inline int step_stopped(struct step *step, struct error *err)
{
    if (!atomic_load_explicit(&step->stop.stopped, memory_order_relaxed) &&
        !atomic_load_explicit(&step->cancelled, memory_order_relaxed))
        return 0;
    return step_stop_reason(step, err);
}

/* Called when nothing of the step runs any more, before it is declared over: releases resources,
 * last made first. The step can be used again, if it was not cancelled. */
void step_end(struct step *step);

#endif
