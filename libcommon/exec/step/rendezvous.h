/* SPDX-License-Identifier: Apache-2.0
 *
 * Where Send and Recv meet: the values of one step that are on their way from one executor to
 * another. An executor knows no more of it than this interface, so that the other end may be in the
 * same process or behind a link.
 *
 * A key is sent once and received once. Sending never waits, receiving calls back. Thread-safe.
 */
#ifndef TF_EXEC_RENDEZVOUS_H
#define TF_EXEC_RENDEZVOUS_H

#include "exec/plan/plan.h"
#include "exec/step/device_point.h"

/* The names are kept by whoever calls until the step is over. */
struct rendezvous_key {
    const char *tensor_name; /* of the Send */
    uint64_t iteration;      /* kernel_call.iteration: 0 outside of loops */
    /* The devices that the value comes from and goes to, in the Send and the Recv alike, canonical
     * (graph/device_name.h). No two pairs of a step differ in them alone. */
    const char *send_device, *recv_device;
    int32_t priority; /* of the Send: smaller ones go first; 0 where none is given */
};

/* A value on its way. */
struct rendezvous_value {
    struct tensor tensor; /* reference-counted memory; of no type: the value is dead */
    struct device_point at;
    /* Called with the value when it is released; NULL: nothing. What follows is its own. */
    void (*released)(const struct rendezvous_value *value);
    void *owner;
    uint64_t charged;
};

/* A waiter that a receiver hands over until `arrived` is called, exactly once, from any thread and
 * perhaps before receive returns: with the value, which is valid during the call; with NULL for a
 * dead one; with the reason if it will not come. */
struct rendezvous_waiter {
    void (*arrived)(struct rendezvous_waiter *waiter, const struct rendezvous_value *value,
                    const struct error *failure);
    struct rendezvous_waiter *next;
};

struct rendezvous {
    /* value: is taken, and empty then, also when it fails; NULL: dead. ERR_INTERNAL when the key
     * was sent before and not received yet; after an abort its reason. */
    int (*send)(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                struct rendezvous_value *value, struct error *err);
    void (*receive)(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                    struct rendezvous_waiter *waiter);
    /* The step has failed: all who wait or will wait are told the first reason. */
    void (*abort)(struct rendezvous *rendezvous, const struct error *reason);
    /* False: there was no abort. */
    bool (*aborted)(struct rendezvous *rendezvous, struct error *reason);
    void (*free)(struct rendezvous *rendezvous);
    bool takes_devices; /* values where they are; else those in host memory alone */
    /* Returns whether there is a key, received or sent and not both yet, that is the one looked
     * for; `is_it` is called with a lock. NULL: it cannot be looked into. */
    bool (*find)(struct rendezvous *rendezvous,
                 bool (*is_it)(void *context, const struct rendezvous_key *key, bool is_received),
                 void *context);
};

/* A rendezvous for executors of one process, with room for so many keys at once before it becomes
 * slower; 0: some hundred. It takes values of devices. */
struct rendezvous *rendezvous_local_new(size_t n_keys);

void rendezvous_value_release(struct rendezvous_value *value);

/* ---- for kernels ---- */

/* Prepares a Send or a Recv: its state is the key without the iteration. */
int rendezvous_prepare(struct kernel_setup *setup);

/* Returns the key of such a call, or one whose state begins with the key. */
struct rendezvous_key rendezvous_key_of(const struct kernel_call *call);

/* Returns the rendezvous of the call's step; NULL with call->err set: it has none. */
struct rendezvous *rendezvous_of(struct kernel_call *call);

/* Runs a Recv: `take` makes the output of a value of the right type, or several of any value, on a
 * thread of whoever sends; a dead one leaves them out. KERNEL_PENDING, or an error code. */
int rendezvous_receive(struct kernel_call *call,
                       int (*take)(struct kernel_call *call, const struct rendezvous_value *value));

#endif
