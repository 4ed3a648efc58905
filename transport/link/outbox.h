/* SPDX-License-Identifier: Apache-2.0
 *
 * What a link has to write. Any thread puts records in; one thread at a time, the writer, takes
 * bytes out. Small records are gathered into one piece of memory, tensors of large ones are shared
 * until they are written.
 *
 * The most urgent record goes first, and of those that are equally urgent the one that was put in
 * first. A large record is cut into bins; between two of them more urgent ones come whole
 * (docs/stream.md, Links). So they form a stack: the one on top is being written, and each is more
 * urgent than those below, which go on when it is through.
 */
#ifndef TF_TRANSPORT_OUTBOX_H
#define TF_TRANSPORT_OUTBOX_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "base/vec.h"
#include "transport/link/link.h"
#include "wire/encoder.h"

#define OUTBOX_WINDOW 16 /* pieces that are offered to the system at once */

#define OUTBOX_NOTHING INT64_MAX /* the priority of no record: behind all */

struct packet {
    struct str bytes; /* whole small records, or the header of a large one */
    struct named_tensor *tensors;
    int n_tensors;
    int32_t priority;
    uint64_t number; /* in the order in which packets were put in */
    bool is_whole;   /* nothing may come between its bins */

    /* The writer's own, since it is on the stack: */
    bool started; /* `bytes` were offered */
    struct encoder_bodies bodies;
    struct packet *next; /* the one below; or of those that are kept empty */
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
    struct encoder encoder;         /* of the record that is begun; the lock is held then */
    VEC(struct packet *) waiting;   /* put in, not yet the writer's: a heap, the next one first */
    atomic_int_least64_t priority;  /* of that one; OUTBOX_NOTHING: none waits */
    struct packet *gathering;       /* the last one, if small records may follow in it */
    struct packet *spare;           /* empty ones, to be used again */
    struct encoder_bodies flat;     /* of small records */
    uint64_t put;                   /* bytes */
    uint64_t n_packets, overtaking; /* put in so far; of them, begun within others */
    enum outbox_state state;
    bool again; /* room was announced while somebody wrote */
    bool sums;

    /* the writer's own: */
    struct packet *current; /* on top of the stack */
    int depth;              /* of the stack */
    struct packet *written; /* not among the spare ones yet */
    struct outbox_piece window[OUTBOX_WINDOW];
    int first, n;  /* of the window */
    size_t offset; /* written of the first piece */
};

/* Bins have up to bin_bytes: as much as may keep a more urgent record waiting. */
void outbox_init(struct outbox *out, bool sums, size_t bin_bytes);
void outbox_release(struct outbox *out);

/* Puts the record in whose header is finished in out->encoder. The lock is held. ERR_OS. */
int outbox_put(struct outbox *out, int32_t priority, const struct named_tensor *tensors,
               int n_tensors, struct error *err);

/* Gives the writer, who has nothing left, what comes next; false: nothing. The lock is held. */
bool outbox_take(struct outbox *out);

/* The writer: up to `limit` bytes that come next, as vectors (OUTBOX_WINDOW of them), which are the
 * next ones whatever is put in meanwhile; 0: all is written. The lock is not held. */
int outbox_offer(struct outbox *out, size_t limit, struct iovec *vectors);

/* The writer: n bytes of what was offered were written. */
void outbox_advance(struct outbox *out, size_t n);

#endif
