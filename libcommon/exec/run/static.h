/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step of a static plan writes to: arena, tensors, calls. Private to exec/run.
 */
#ifndef TF_EXEC_STATIC_H
#define TF_EXEC_STATIC_H

#include "exec/device/arenas.h"
#include "exec/device/deferred.h"
#include "exec/plan/plan_while.h"
#include "exec/run/captured.h"
#include "exec/run/item.h"
#include "exec/run/run.h"

/* An input that is seen in another shape than it was made in. */
struct seen_input {
    struct tensor tensor;
    const struct tensor *of;
};

struct static_call {
    struct call_host host; /* first: what call->executor points to */
    struct kernel_call call;
};

/* Before the call: what is fed, and a variable, may be elsewhere than in the step before. */
void static_see(const struct static_call *c);

struct instance {
    struct instance *next;
    struct plan *plan;
    struct shared_arena *arenas[2]; /* in host memory, in the device's; NULL: it needs none */
    struct device_step on_device;
    struct captured captured;
    const struct execution *running; /* that the step is of */
    struct tensor *tensors;          /* by value */
    struct tensor **pointers;        /* inputs and outputs of all calls */
    struct static_call *calls;       /* by position */
    struct plain_call *plain;        /* by position */
    struct seen_input *seen;         /* of all calls */
    bool *dead;                      /* by value, then by item; NULL: nothing ever is */
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

/* static_branch.c: before an item that may be dead is to run, whose inputs are bound then: whether
 * it is; and what is dead when it has run. */
bool branch_begin(struct instance *instance, const struct static_call *call);
void branch_end(struct instance *instance, const struct static_call *call);

/* Where a value is: the instance's, the plan's or a variable's. */
struct tensor *instance_tensor(struct instance *instance, int value);
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
