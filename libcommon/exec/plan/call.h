/* SPDX-License-Identifier: Apache-2.0
 *
 * The executor's side of a kernel's call: made by exec/run for each item, and by plan_fold.c for
 * what it computes. Private to the executor.
 */
#ifndef TF_EXEC_CALL_H
#define TF_EXEC_CALL_H

#include "base/memory.h"
#include "exec/plan/plan_private.h"

struct iteration;

/* Memory that a kernel requested during a call (kernel_temporary, kernel_device_temporary). */
struct temporary {
    void *memory;          /* the host's; NULL: `buffer` */
    struct buffer *buffer; /* its free comes after the work enqueued so far */
};
typedef VEC(struct temporary) temporary_vec;

/* Leaves the vector empty and usable. */
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

/* call->executor points to this: how a kernel obtains outputs. It is the first member of whatever
 * the executor keeps per call. */
struct call_host {
    struct executor executor; /* first */
    bool planned;             /* outputs, unless counted, are or alias memory of the plan */
    bool is_captured;         /* part of captured work, which keeps its memory and has no other */
    struct plan *plan;
    const struct item *item;
    struct tensor *fetches;        /* of the run */
    struct tensor *kept;           /* by output: its memory in captured work; NULL: none */
    struct pool *pool;             /* of outputs in the device's memory; NULL: there is none yet */
    temporary_vec *temporaries;    /* freed after the call */
    struct device_step *on_device; /* the step on a device with memory of its own */
    struct iteration *iteration;   /* that the call runs in */
};

/* A call of the host's item, without what depends on the step; `values`: inputs, then outputs. */
static inline struct kernel_call item_call(struct call_host *host, struct tensor **values)
{
    const struct item *item = host->item;
    return (struct kernel_call){.node = item->node,
                                .state = item->state,
                                .scratch_bytes = item->scratch_bytes,
                                .form = item->code ? item->code->form : 0,
                                .n_in = item->n_in,
                                .n_out = item->n_out,
                                .shapes_known = item->shapes_known,
                                .in = values,
                                .out = values + item->n_in,
                                .refs = item->refs,
                                .device = host->plan->options.device,
                                .threads = plan_team(host->plan),
                                .executor = &host->executor};
}

static inline struct call_host *call_host(const struct kernel_call *call)
{
    return (struct call_host *)call->executor;
}

#endif
