/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel's call that waits for a reply without a thread. The call ends by the reply or because
 * the step stops, whichever comes first.
 */
#ifndef TF_EXEC_PENDING_H
#define TF_EXEC_PENDING_H

#include "exec/device/kernel.h"
#include "exec/step/step.h"

/* The first member of a kernel's data of a call, from mem_alloc. */
struct pending_call {
    struct step_waiter cancel; /* first */
    struct kernel_call *call;
    /* Withdraws the request. False: the reply is about to come, or has. */
    bool (*withdraw)(struct pending_call *pending);
    atomic_bool told; /* that the step stops */
    atomic_int users; /* run, and whatever ends the call */
};

/* Called before the request is made, and after everything that `withdraw` reads is set: the step
 * may stop at once. If the step has stopped, returns its code, and `pending` has been freed. */
int pending_begin(struct pending_call *pending, struct kernel_call *call,
                  bool (*withdraw)(struct pending_call *pending));

/* Called after the request; returns the result of run. `pending` may be freed before or by this. */
int pending_wait(struct pending_call *pending);

/* The reply has come: the call ends with 0, or a code with call->err set. */
void pending_end(struct pending_call *pending, int code);

#endif
