/* SPDX-License-Identifier: Apache-2.0
 *
 * A link's send queue. Any thread adds records; one thread at a time, the writer, removes bytes.
 * Small records are gathered into one piece of memory; tensors of large ones are shared until they
 * are written.
 *
 * The most urgent record is sent first; among equally urgent ones, the first added. A large record
 * is split into bins, between which more urgent records are inserted whole (docs/stream.md, Links).
 * So records under way form a stack: the top one is being written, and each is more urgent than
 * those below it, which continue when it is done.
 */
#ifndef TF_TRANSPORT_SEND_QUEUE_H
#define TF_TRANSPORT_SEND_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "base/vec.h"
#include "transport/link/link.h"
#include "wire/encoder.h"

#define SEND_QUEUE_WINDOW 16 /* pieces passed to the system at once */

#define SEND_QUEUE_NOTHING INT64_MAX /* priority if nothing waits: after all others */

struct packet {
    struct str bytes; /* whole small records, or the header of a large one */
    struct named_tensor *tensors;
    int n_tensors;
    int32_t priority;
    uint64_t number; /* in the order of adding */
    bool is_whole;   /* no record may come between its bins */

    /* For the writer only, once on the stack: */
    bool started; /* `bytes` were offered */
    struct encoder_bodies bodies;
    struct packet *next; /* the packet below it, or the next spare one */
};

struct send_queue_piece {
    struct encoder_piece piece;
    struct packet *last_of; /* the packet that ends with this piece */
};

/* Tells whether a thread is the writer. */
enum send_queue_state {
    SEND_QUEUE_IDLE,    /* no writer, nothing waits */
    SEND_QUEUE_WRITING, /* a thread is writing */
    SEND_QUEUE_FULL,    /* the system has no room; the loop is told when it has */
};

struct send_queue {
    pthread_mutex_t lock;
    struct encoder encoder;         /* for the record being begun; the lock is held meanwhile */
    VEC(struct packet *) waiting;   /* added but not yet with the writer: a heap, next one on top */
    atomic_int_least64_t priority;  /* of the next one; SEND_QUEUE_NOTHING: none waits */
    struct packet *gathering;       /* the last added one, if small records may join it */
    struct packet *spare;           /* empty ones for reuse */
    struct encoder_bodies flat;     /* for small records */
    uint64_t put;                   /* bytes added */
    uint64_t n_packets, overtaking; /* packets added; those begun between bins of others */
    enum send_queue_state state;
    bool again; /* room was announced while a thread was writing */
    bool sums;

    /* For the writer only: */
    struct packet *current; /* top of the stack */
    int depth;              /* of the stack */
    struct packet *written; /* written, but not among the spare ones yet */
    struct send_queue_piece window[SEND_QUEUE_WINDOW];
    int first, n;  /* in the window */
    size_t offset; /* bytes of the first piece written */
};

/* `bin_bytes` limits bins: the bytes that may delay a more urgent record. */
void send_queue_init(struct send_queue *out, bool sums, size_t bin_bytes);
void send_queue_release(struct send_queue *out);

/* Adds the record whose header is complete in out->encoder. The lock is held. ERR_OS. */
int send_queue_put(struct send_queue *out, int32_t priority, const struct named_tensor *tensors,
                   int n_tensors, struct error *err);

/* Gives the writer, who has nothing left, the next packet; false: none. The lock is held. */
bool send_queue_take(struct send_queue *out);

/* For the writer: returns the number of vectors, up to SEND_QUEUE_WINDOW, for the next bytes, at
 * most `limit`, which later records do not change; 0: all is written. The lock is not held. */
int send_queue_offer(struct send_queue *out, size_t limit, struct iovec *vectors);

/* For the writer: n bytes of the offered vectors were written. */
void send_queue_advance(struct send_queue *out, size_t n);

#endif
