/* SPDX-License-Identifier: Apache-2.0
 *
 * Rendezvous of Send and Recv: the values of one step on their way from one executor to another. An
 * executor knows only this interface, so the other end may be in the same process or behind a link.
 *
 * A key is sent once and received once. Sending never waits, receiving calls back. Thread-safe.
 */
#ifndef TF_EXEC_RENDEZVOUS_H
#define TF_EXEC_RENDEZVOUS_H

#include "exec/plan/plan.h"
#include "exec/step/device_point.h"

/* The caller keeps the names until the step is over. */
struct rendezvous_key {
    const char *tensor_name; /* of the Send */
    uint64_t iteration;      /* kernel_call.iteration: 0 outside of loops */
    /* The devices that the value comes from and goes to, equal in the Send and the Recv, canonical
     * (graph/device_name.h). No two pairs of a step differ only in these. */
    const char *send_device, *recv_device;
    int32_t priority; /* of the Send: smaller ones go first; 0 by default */
};

/* The source of a value that is sent only once a receiver waits for it. `release` is called exactly
 * once, with no lock held, when one does (is_wanted), or when none will. */
struct rendezvous_source {
    void (*release)(struct rendezvous_source *source, bool is_wanted);
};

/* A value on its way. */
struct rendezvous_value {
    struct tensor tensor; /* reference-counted memory; no type: the value is dead */
    struct device_point at;
    struct rendezvous_source *source; /* of a value that is only announced; NULL: it is here */
    bool was_announced;               /* its source was asked for it */
    /* Called with the value when it is released, or NULL. The next members are for it. */
    void (*released)(const struct rendezvous_value *value);
    void *owner;
    uint64_t charged;
};

/* A waiter, which the receiver lends until `arrived` is called, exactly once, from any thread and
 * perhaps before receive returns: with the value, which is valid during the call; with NULL for a
 * dead value; or with the reason why none will come. */
struct rendezvous_waiter {
    void (*arrived)(struct rendezvous_waiter *waiter, const struct rendezvous_value *value,
                    const struct error *failure);
};

struct rendezvous {
    /* value: taken, and left empty, also on failure; NULL: dead. ERR_INTERNAL if the key was sent
     * before and not received yet; after an abort its reason. */
    int (*send)(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                struct rendezvous_value *value, struct error *err);
    void (*receive)(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                    struct rendezvous_waiter *waiter);
    /* The step has failed: everyone who waits, or will, is told the first reason. */
    void (*abort)(struct rendezvous *rendezvous, const struct error *reason);
    /* Returns false if there was no abort. */
    bool (*aborted)(struct rendezvous *rendezvous, struct error *reason);
    void (*free)(struct rendezvous *rendezvous);
    bool takes_devices; /* values in the memory of a device; else only those in host memory */
    /* Returns whether `is_it` accepts a key that was received or sent, but not both yet; it is
     * called with a lock held. NULL: the keys cannot be listed. */
    bool (*find)(struct rendezvous *rendezvous,
                 bool (*is_it)(void *context, const struct rendezvous_key *key, bool is_received),
                 void *context);
    void *owner; /* for whoever replaces functions of it */
};

/* A rendezvous for executors of one process. It slows down with more than n_keys keys at a time; 0:
 * some hundred. It takes device values. */
struct rendezvous *rendezvous_local_new(size_t n_keys);

void rendezvous_value_release(struct rendezvous_value *value);

/* ---- for kernels ---- */

/* Prepares a Send or a Recv: its state is the key without the iteration. */
int rendezvous_prepare(struct kernel_setup *setup);

/* Returns the key of such a call, or of one whose state begins with the key. */
struct rendezvous_key rendezvous_key_of(const struct kernel_call *call);

/* Returns the rendezvous of the call's step; NULL with call->err set if it has none. */
struct rendezvous *rendezvous_of(struct kernel_call *call);

/* Runs a Recv: on the sender's thread `take` makes the output from a value of the right type, or
 * many from any value; not for a dead one. KERNEL_PENDING, or an error code. */
int rendezvous_receive(struct kernel_call *call,
                       int (*take)(struct kernel_call *call, const struct rendezvous_value *value));

#endif
