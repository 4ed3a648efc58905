/* SPDX-License-Identifier: Apache-2.0
 *
 * A link's inside, for the files of this folder.
 */
#ifndef TF_TRANSPORT_LINK_PRIVATE_H
#define TF_TRANSPORT_LINK_PRIVATE_H

#include <stdatomic.h>

#include "transport/channel/channel.h"
#include "transport/channel/link_refusal.h"
#include "transport/link/link.h"
#include "transport/link/outbox.h"
#include "transport/loop/keeper.h"
#include "transport/loop/loop_private.h"
#include "wire/decoder.h"

struct recycle;

struct link_config {
    struct link_hello self;
    const char *producer;
    double lease, handshake; /* seconds */
    size_t record_bytes;
    size_t shared_bytes; /* of a ring in shared memory; 0: none */
    bool sums;           /* wanted on this host as well */
    struct recycle *recycle;
    void *context;
    /* The peer's hello came: whether it may be a link. ERR_... refuses it, and the peer is told. */
    int (*hello)(void *context, struct link *link, struct error *err);
    void (*opened)(void *context, struct link *link);
    /* Exactly once, opened or not; the link is dropped behind it. */
    void (*closed)(void *context, struct link *link, const struct error *why);
    void (*record)(void *user, struct link *link, struct record *record);
    bool (*place)(void *user, struct link *link, const struct record *record,
                  const struct tensor *like, struct tensor *t);
    void *user;
};

enum link_state {
    LINK_HANDSHAKE, /* of the channel */
    LINK_HELLO,     /* ours is sent, theirs is awaited */
    LINK_WELCOME,   /* theirs was taken, and answered by a ping; theirs is awaited */
    LINK_OPEN,
    LINK_DRAINING, /* closed in an orderly way: what waits is written, then the peer ends it */
    LINK_CLOSED,   /* `closed` was called */
};

/* A record that is being read, between whose bins that above it came. */
struct link_reader {
    struct decoder decoder;
    struct record record;
    struct link_reader *below;
};

struct link {
    atomic_int holders;
    const struct link_config *config; /* lives as long as links are open */
    struct loop *loop;
    struct channel *channel;
    struct channel *offered; /* in shared memory, until the peer answers */
    size_t shared_bytes;     /* that both sides want */
    int fd;
    struct event *event;
    enum link_state state;       /* the loop's thread's own, as all that follows up to `out` */
    bool dialed, was_open, safe; /* safe: bytes cannot be damaged on the way */
    bool told;                   /* the peer gave the reason */
    bool ending;                 /* the peer sends no more: the end is to be read */
    struct link_hello peer;
    double peer_lease;
    double peer_still;               /* for how long its loop had stood still, as it said last */
    char *address, *name, *expected; /* the task that was dialed, or NULL */
    void *user;
    enum link_refusal refusal;
    double came;               /* when it was accepted */
    struct error unwanted;     /* with a code: why it is refused when its hello is there */
    struct loop_poller poller; /* of a socket that is open */
    struct loop_timer *timer;  /* of the handshake, then of the lease */
    double checked, silence; /* when the lease was checked last, and for how long there was nothing
                              */
    uint64_t heard;          /* bytes_in then */
    uint64_t drained;        /* bytes_out when it was last looked whether draining gets on */

    struct link_reader outer;    /* of records that are within no other */
    struct link_reader *reading; /* the innermost */
    struct link_reader *spare;   /* one that was used before, or NULL */
    int depth;                   /* of those within `outer` */
    uint8_t *buffer;
    size_t start, end; /* of what is buffered */

    struct outbox out;
    struct error why;         /* out.lock: why it is being closed */
    bool closing;             /* out.lock: by whoever was first */
    struct error write_error; /* the writer's */
    struct keeper_task keeper;
    double ping_seconds;
    uint64_t kept_out; /* the keeper's: bytes_out at its last look */
    double kept_at;    /* and when that changed */
    atomic_uint_least64_t bytes_in, bytes_out, records_in, records_out, shared_in, shared_out;
    atomic_uint_least64_t nested_in, tensors_in, tensors_out;
};

/* The distance of the peer. */
enum link_path {
    LINK_PLAIN, /* over a network, as it is */
    LINK_TLS,
    LINK_LOOPBACK, /* TCP on this host, with TLS or without */
    LINK_LOCAL,    /* a Unix socket, or a ring */
};

/* Takes the connected, non-blocking socket with the channel over it. The link belongs to itself: it
 * goes when it was closed. `address` is for messages, `expected` the task that was dialed, or NULL.
 * Calls nothing of config's yet. */
struct link *link_new(struct loop *loop, const struct link_config *config, struct channel *channel,
                      const char *address, const char *expected, enum link_path path);

/* In the loop's thread. Each puts link_name in front of the reason, calls `closed`, and ends the
 * link; only the first reason counts. */
void link_fail(struct link *link, const struct error *why);
void link_refuse(struct link *link, const struct error *why); /* and tells the peer */
void link_ended(struct link *link);                           /* in an orderly way */

/* Ends it in an orderly way without waiting for the peer. */
void link_end_now(struct link *link);

/* Both hellos are through. */
void link_is_open(struct link *link);

/* link_name for the peer as it is known now. */
void link_make_name(struct link *link);

/* ---- writing (link_write.c) ---- */

/* As link_begin and link_send, for the link's own records: also while it is not open. */
msgpack_packer *link_begin_own(struct link *link, enum record_kind kind, int n_fields);
void link_send_own(struct link *link);

/* Adds the bytes of the tensors of a record. */
void link_count_tensors(atomic_uint_least64_t *counter, const struct named_tensor *tensors, int n);

void link_can_write(struct link *link); /* the loop: room was announced */
bool link_has_written(struct link *link);
void link_keep_alive(void *link); /* the keeper's call */

/* ---- reading (link_read.c) ---- */

void link_start_reading(struct link *link);
void link_stop_reading(struct link *link); /* for good */
void link_can_read(struct link *link);

/* ---- shared memory (link_shared.c) ---- */

bool link_asks_shared(const struct link *link);
void link_agree_shared(struct link *link, int64_t theirs); /* bytes, as the hello says; 0: none */
void link_welcome(struct link *link);                      /* the hello was taken */
void link_take_welcome(struct link *link, const struct record *record);

/* ---- hellos (link_hello.c) ---- */

void link_send_hello(struct link *link);
int link_take_hello(struct link *link, struct record *record, struct error *err);

#endif
