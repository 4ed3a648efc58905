/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the exchange share. Private to transport.
 *
 * The rendezvous of one step over several processes is one of this process, where values meet, and
 * what peers have announced.
 *
 * Locks: that of a step, then that of its rendezvous; neither is held, nor that of an exchange,
 * while a waiter or a peer is called.
 */
#ifndef TF_TRANSPORT_EXCHANGE_PRIVATE_H
#define TF_TRANSPORT_EXCHANGE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/vec.h"
#include "transport/value/exchange.h"

#define EXCHANGE_BUCKETS 64

struct route {
    const char *task;
    struct peer *peer; /* held; NULL: not there yet */
};

/* A value that may come. */
struct expected_value {
    const char *name;
    struct node_output output;
    size_t route; /* where from */
};

/* A value that a peer sends once it is granted. */
struct announcement {
    const char *name; /* the exchange's own */
    char *key;        /* the same text, which stays */
    uint64_t iteration;
    struct peer *peer; /* held */
    bool granted;      /* a receiver waits */
};

/* Two holders use it: the step, by rendezvous->free, and the exchange. */
struct remote {
    struct rendezvous interface; /* first */
    struct rendezvous *local;    /* where values meet */
    struct value_exchange *exchange;
    uint64_t step;
    atomic_int holders;
    pthread_mutex_t lock; /* guards what follows */
    VEC(struct announcement) announced;
};

struct value_exchange {
    struct exchanges *all;
    uint64_t session;
    atomic_int holders;
    const char *task;          /* this one */
    struct arena arena;        /* of the texts */
    struct map names, devices; /* of `expected`, of `routes` */
    VEC(struct expected_value) expected;
    struct value_exchange *next;

    pthread_mutex_t lock; /* guards what follows */
    VEC(struct route) routes;
    VEC(struct remote *) steps; /* held */
    uint64_t begun;             /* the largest id */
};

struct exchanges {
    pthread_mutex_t lock; /* guards the buckets */
    struct value_exchange *buckets[EXCHANGE_BUCKETS];
    atomic_uint_fast64_t dropped;
};

/* Held for the caller; NULL: there is none. */
struct value_exchange *exchange_find(struct exchanges *exchanges, uint64_t session);
void exchange_release(struct value_exchange *exchange);

/* The peer of a device, held for the caller; NULL: the device is of this task. */
int exchange_find_route(struct value_exchange *exchange, const char *device, struct peer **peer,
                        struct error *err);
/* With the lock: where the step is, NULL: it is not there; a new one. */
struct remote **exchange_step(struct value_exchange *exchange, uint64_t step);
struct remote *exchange_make_step(struct value_exchange *exchange, uint64_t step);
/* Its rendezvous is free; with `failed` nobody asks for what it has announced. */
void exchange_end_step(struct remote *remote, bool failed);
/* The exchange's own text of a name that a value may come by; NULL: none may. */
const char *exchange_find_name(const struct value_exchange *exchange, const char *name);

/* ---- the rendezvous of a step ---- */

/* Keys that come are kept as they are given: they must stay as long. */
struct remote *remote_new(struct value_exchange *exchange, uint64_t step, size_t n_keys);
struct remote *remote_retain(struct remote *remote);
void remote_release(struct remote *remote);

/* A value of a peer (NULL: dead). `charged`: bytes of its credit that the value took, which go back
 * when it is taken; 0 with `granted`. ERR_PROTOCOL. */
struct arrival {
    struct peer *peer;
    const char *key;
    uint64_t iteration, charged;
    bool granted;
    const struct tensor *value;
};
int remote_arrived(struct remote *remote, const struct arrival *arrival, struct error *err);
int remote_announced(struct remote *remote, const struct arrival *arrival, struct error *err);

/* Finds the key of the first that waits for a value from a device of the task. */
bool remote_waits_for(struct remote *remote, const char *task, struct str *out);

#endif
