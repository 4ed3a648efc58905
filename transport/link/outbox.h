/* SPDX-License-Identifier: Apache-2.0
 *
 * What a link has to write. Any thread puts records in; one thread at a time, the writer, takes
 * bytes out. Small records are gathered into one piece of memory, tensors of large ones are shared
 * until they are written.
 */
#ifndef TF_TRANSPORT_OUTBOX_H
#define TF_TRANSPORT_OUTBOX_H

#include <pthread.h>
#include <sys/uio.h>

#include "wire/encoder.h"

#define OUTBOX_WINDOW 16 /* pieces that are offered to the system at once */

struct packet {
    struct str bytes; /* whole small records, or the header of a large one */
    struct named_tensor *tensors;
    int n_tensors;
    struct packet *next;
};

struct outbox_piece {
    struct encoder_piece piece;
    struct packet *last_of; /* the packet that is written with this piece */
};

/* State of the writer's right. */
enum outbox_state {
    OUTBOX_IDLE,    /* nobody writes, nothing waits */
    OUTBOX_WRITING, /* somebody does */
    OUTBOX_FULL,    /* the system takes no more; the loop hears when it does */
};

struct outbox {
    pthread_mutex_t lock;
    struct encoder encoder;     /* of the record that is begun; the lock is held then */
    struct packet *head, *tail; /* put in, not yet the writer's */
    struct packet *spare;       /* empty ones, to be used again */
    struct encoder_bodies flat; /* of small records */
    uint64_t put;               /* bytes */
    enum outbox_state state;
    bool again; /* room was announced while somebody wrote */
    bool sums;

    /* the writer's own: */
    struct packet *current; /* and those behind it */
    struct packet *written; /* not among the spare ones yet */
    bool started;           /* the bytes of `current` were offered */
    struct encoder_bodies bodies;
    struct outbox_piece window[OUTBOX_WINDOW];
    int first, n;  /* of the window */
    size_t offset; /* written of the first piece */
};

void outbox_init(struct outbox *out, bool sums);
void outbox_release(struct outbox *out);

/* Puts the record in whose header is finished in out->encoder. The lock is held. ERR_OS. */
int outbox_put(struct outbox *out, const struct named_tensor *tensors, int n_tensors,
               struct error *err);

/* Gives the writer, who has nothing left, what was put in; false: nothing. The lock is held. */
bool outbox_take(struct outbox *out);

/* The writer: up to `limit` bytes that come next, as vectors (OUTBOX_WINDOW of them); 0:
 * all that it was given is written. */
int outbox_offer(struct outbox *out, size_t limit, struct iovec *vectors);

/* The writer: n bytes of what was offered were written. */
void outbox_advance(struct outbox *out, size_t n);

#endif
