/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the exchange share. Private to transport.
 *
 * Locks: that of the table, then that of an exchange; neither is held while a rendezvous or a peer
 * is called.
 */
#ifndef TF_TRANSPORT_EXCHANGE_PRIVATE_H
#define TF_TRANSPORT_EXCHANGE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/vec.h"
#include "transport/value/exchange.h"
#include "transport/value/rendezvous_remote.h"

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

struct exchange {
    struct exchanges *all;
    uint64_t session;
    atomic_int holders;
    const char *task;          /* this one */
    struct arena arena;        /* of the texts */
    struct map names, devices; /* of `expected`, of `routes` */
    VEC(struct expected_value) expected;
    struct exchange *next;

    pthread_mutex_t lock; /* guards what follows */
    VEC(struct route) routes;
    VEC(struct rendezvous *) steps; /* held */
    uint64_t begun;                 /* the largest id */
};

struct exchanges {
    pthread_mutex_t lock; /* guards the buckets */
    struct exchange *buckets[EXCHANGE_BUCKETS];
    atomic_uint_fast64_t dropped;
};

/* Held for the caller; NULL: there is none. */
struct exchange *exchange_find(struct exchanges *exchanges, uint64_t session);
void exchange_release(struct exchange *exchange);

/* With the lock: where the step is, NULL: it is not there; a new one. */
struct rendezvous **exchange_step(struct exchange *exchange, uint64_t step);
struct rendezvous *exchange_make_step(struct exchange *exchange, uint64_t step);

#endif
