/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums by devices: calls of them, and what their files share.
 */
#ifndef TF_TRANSPORT_COLLECTIVE_DEVICE_H
#define TF_TRANSPORT_COLLECTIVE_DEVICE_H

#include "exec/step/copy_out.h"
#include "transport/collective/collective_private.h"

enum sum_state {
    SUM_COMPUTED, /* the values, or a fault, are awaited; the first, so that zeroed is that */
    SUM_MEETING,
    SUM_READY,    /* the thread is to enqueue it */
    SUM_ENQUEUED, /* it does, or the device adds */
    SUM_COPIED,   /* values are on their way to the host */
    SUM_LINKED,   /* and go over the links */
};

/* A call. The list holds it until it is over, and so does who looks at it without the lock. */
struct device_sum {
    struct device_sum *next;
    struct device_sums *sums;
    int holders;
    enum sum_state state;
    struct collective_waiter *waiter; /* NULL: nobody waits any more */
    struct collective_call call;      /* with values and names of its own */
    char *name, *host_name;           /* keys of its rounds: of what it brings, and of values */
    enum collective_kind *kinds;
    struct tensor *values, *results;
    struct copy_out check, away; /* of the fault alone; of the values */
    struct collective_waiter meeting;
    int64_t number; /* from 1 on */
    struct event_waiter over;
};

struct device_sums {
    struct process_group *group;
    struct device *device;
    struct communicator_place place;
    pthread_t thread;
    atomic_bool gives_up;
    struct communicator *communicator; /* the thread's own */
    pthread_mutex_t lock;              /* guards what follows, and the state of sums */
    pthread_cond_t changed;
    enum { JOIN_WAITS, JOIN_DONE, JOIN_FAILED } join;
    bool closing;
    struct error failed; /* nothing is added any more */
    int64_t given, next; /* numbers: the last that this member gave, the next to be enqueued */
    struct device_sum *first;
};

/* ---- calls, as in the interface (collective_device.c) ---- */

void device_sums_reduce(struct device_sums *sums, const struct collective_call *call,
                        struct collective_waiter *waiter);
bool device_sums_cancel(struct device_sums *sums, struct collective_waiter *waiter);
/* Nothing meets any more: the communicator is aborted, soon. */
void device_sums_give_up(struct device_sums *sums, const struct error *why);
void device_sums_free(struct device_sums *sums);

/* ---- their course ---- */

/* Takes it off the list and tells who waits; neither: nobody may wait any more. */
void device_sum_finish(struct device_sum *s, const struct collective_results *results,
                       const struct error *failure);
/* As what waits over the links is told: with its name. */
void device_sum_fail(struct device_sum *s, const struct error *why);

/* The thread (collective_device_queue.c): joins the others, and enqueues sums that are ready. */
void *device_sums_run(void *sums);

#endif
