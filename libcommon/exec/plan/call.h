/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands behind a kernel's call: made by exec/run for each item, and by plan_fold.c for what
 * it computes. Private to the executor.
 */
#ifndef TF_EXEC_CALL_H
#define TF_EXEC_CALL_H

#include "base/memory.h"
#include "exec/plan/plan_private.h"

struct iteration;

/* Memory that kernels have asked for during a call (kernel_temporary, kernel_device_temporary). */
struct temporary {
    void *memory;          /* the host's; NULL: `buffer` */
    struct buffer *buffer; /* which goes back behind what was enqueued */
};
typedef VEC(struct temporary) temporary_vec;

/* The vector is empty then, and can be used again. */
static inline void temporaries_free(temporary_vec *temporaries)
{
    for (; temporaries->n; temporaries->n--) {
        struct temporary *temporary = &temporaries->items[temporaries->n - 1];
        if (temporary->buffer)
            temporary->buffer->free(temporary->buffer);
        else
            mem_free(temporary->memory);
    }
}

/* call->executor points to this: how a kernel obtains outputs. The first member of whatever the
 * executor keeps per call. */
struct call_host {
    struct executor executor; /* first */
    bool planned;             /* outputs have memory from the plan, or alias what has */
    bool counts;              /* but for counted ones, which come from `pool` */
    bool copies_reads; /* dynamic: an output cannot be memory of a variable that is not counted */
    bool is_captured;  /* it is of captured work: its memory stays, and it has no other */
    struct plan *plan;
    const struct item *item;
    struct tensor **fetches;       /* of the step */
    struct tensor *kept;           /* by output: what captured work has it in; NULL: nothing */
    struct pool *pool;             /* where counted outputs come from; NULL: there is none yet */
    temporary_vec *temporaries;    /* freed after the call */
    struct device_step *on_device; /* the step on a device with memory of its own */
    struct iteration *iteration;   /* that it runs in */
};

static inline struct call_host *call_host(const struct kernel_call *call)
{
    return (struct call_host *)call->executor;
}

#endif
