/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/pending.h"

#include "base/memory.h"

static void drop_user(struct pending_call *pending)
{
    if (atomic_fetch_sub(&pending->users, 1) == 1)
        mem_free(pending);
}

void pending_end(struct pending_call *pending, int code)
{
    struct kernel_call *call = pending->call;
    step_off_cancel(call->step, &pending->cancel);
    drop_user(pending);
    kernel_done(call, code);
}

static void end_cancelled(struct pending_call *pending)
{
    pending_end(pending, step_stop_reason(pending->call->step, pending->call->err));
}

static void cancelled(struct step_waiter *cancel, const struct error *reason)
{
    struct pending_call *pending = (struct pending_call *)cancel;
    (void)reason; /* the step has it */
    atomic_store(&pending->told, true);
    if (pending->withdraw(pending))
        end_cancelled(pending);
}

int pending_begin(struct pending_call *pending, struct kernel_call *call,
                  bool (*withdraw)(struct pending_call *pending))
{
    pending->cancel.cancelled = cancelled;
    pending->call = call;
    pending->withdraw = withdraw;
    atomic_store(&pending->users, 2);
    int code = step_on_cancel(call->step, &pending->cancel, call->err);
    if (code)
        mem_free(pending);
    return code;
}

/* The step may have stopped before the request was made. */
int pending_wait(struct pending_call *pending)
{
    if (atomic_load(&pending->told) && pending->withdraw(pending))
        end_cancelled(pending);
    drop_user(pending);
    return KERNEL_PENDING;
}
