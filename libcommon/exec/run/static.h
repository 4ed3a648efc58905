/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step of a static plan writes to: arena, tensors, calls. Private to exec/run.
 */
#ifndef TF_EXEC_STATIC_H
#define TF_EXEC_STATIC_H

#include "exec/plan/plan_internal.h"
#include "exec/step/deferred.h"

struct static_call {
    struct call_host host; /* first: what call->executor points to */
    struct kernel_call call;
};

struct instance {
    struct instance *next;
    struct plan *plan;
    struct buffer *arenas[2];  /* in host memory, in the device's */
    struct tensor *tensors;    /* by value */
    struct tensor **pointers;  /* inputs and outputs of all calls */
    struct static_call *calls; /* by position */
    temporary_vec temporaries;
    VEC(int) feeds;   /* values that are fed */
    VEC(int) counted; /* values that are */
    uint64_t iteration;
    VEC(int) fetches; /* positions of the items that fetch */
    struct error err;

    /* of a step that was started */
    struct execution execution;
    struct deferred_work deferred;
    struct variable_waiter waiter;
    struct event_waiter over;
    int at, n_taken; /* the item that waits for a lock, and how many it has */
    int code;        /* when all items have run */
};

/* One that no step uses, or a new one; NULL with the error set. */
struct instance *instance_take(struct plan *plan, struct error *err);
void instance_give(struct plan *plan, struct instance *instance);

/* What a loop repeats, once. */
struct while_call {
    const struct while_loop *loop;
    const struct tensor *values; /* of its inputs, counted where they have buffers */
    uint64_t iteration;
    struct step *step;
};
/* On the thread that calls; fetches are the caller's. */
int static_repeat(struct instance *instance, const struct while_call *call, struct tensor *fetches,
                  struct error *err);

#endif
