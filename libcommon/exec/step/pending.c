/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/pending.h"

#include "base/memory.h"

static void leave(struct pending *pending)
{
    if (atomic_fetch_sub(&pending->users, 1) == 1)
        mem_free(pending);
}

void pending_end(struct pending *pending, int code)
{
    struct kernel_call *call = pending->call;
    step_off_cancel(call->step, &pending->cancel);
    leave(pending);
    kernel_done(call, code);
}

static void end_cancelled(struct pending *pending)
{
    *pending->call->err = pending->reason;
    pending_end(pending, pending->reason.code);
}

static void cancelled(struct step_waiter *cancel, const struct error *reason)
{
    struct pending *pending = (struct pending *)cancel;
    pending->reason = *reason;
    atomic_store(&pending->told, true);
    if (pending->withdraw(pending))
        end_cancelled(pending);
}

int pending_begin(struct pending *pending, struct kernel_call *call,
                  bool (*withdraw)(struct pending *pending))
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

/* The step may have stopped before the others knew of the call. */
int pending_wait(struct pending *pending)
{
    if (atomic_load(&pending->told) && pending->withdraw(pending))
        end_cancelled(pending);
    leave(pending);
    return KERNEL_PENDING;
}
