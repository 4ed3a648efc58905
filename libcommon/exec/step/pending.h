/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel's call that waits for others without a thread. They answer, or the step stops: whichever
 * comes first ends the call.
 */
#ifndef TF_EXEC_PENDING_H
#define TF_EXEC_PENDING_H

#include "exec/device/kernel.h"
#include "exec/step/step.h"

/* The first member of what a kernel keeps for a call, from mem_alloc. */
struct pending_call {
    struct step_waiter cancel; /* first */
    struct kernel_call *call;
    /* Asks the others to forget the call. False: they are about to answer, or have. */
    bool (*withdraw)(struct pending_call *pending);
    struct error reason; /* of a step that stops; to be read once it was told */
    atomic_bool told;
    atomic_int users; /* run, and whoever ends the call */
};

/* Before the others are asked, and after everything that `withdraw` reads is set: the step may stop
 * at once. The code of a step that has stopped; then nothing is to be done, and `pending` is gone.
 */
int pending_begin(struct pending_call *pending, struct kernel_call *call,
                  bool (*withdraw)(struct pending_call *pending));

/* After they were asked: what run returns. `pending` may be gone before and is afterwards. */
int pending_wait(struct pending_call *pending);

/* They have answered: the call ends with 0, or a code with call->err set. */
void pending_end(struct pending_call *pending, int code);

#endif
