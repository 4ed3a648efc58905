/* SPDX-License-Identifier: Apache-2.0
 *
 * A link's private parts, for the files of this folder.
 */
#ifndef TF_TRANSPORT_LINK_PRIVATE_H
#define TF_TRANSPORT_LINK_PRIVATE_H

#include <stdatomic.h>

#include "transport/channel/channel.h"
#include "transport/link/link.h"
#include "transport/link/send_queue.h"
#include "transport/loop/heartbeat.h"
#include "transport/loop/loop_private.h"
#include "wire/decoder.h"

struct buffer_pool;

struct link_config {
    struct link_hello self;
    const char *producer;
    double lease, handshake; /* seconds */
    size_t record_bytes;
    size_t shared_bytes; /* per ring in shared memory; 0: none */
    bool sums;           /* also wanted on this host */
    struct buffer_pool *buffer_pool;
    void *context;
    /* The peer's hello came: returns 0, or ERR_... to refuse the link and tell the peer. */
    int (*hello)(void *context, struct link *link, struct error *err);
    void (*opened)(void *context, struct link *link);
    /* Called exactly once, opened or not; the link is released afterwards. */
    void (*closed)(void *context, struct link *link, const struct error *why);
    void (*record)(void *user, struct link *link, struct record *record);
    bool (*place)(void *user, struct link *link, const struct record *record,
                  const struct tensor *like, struct tensor *t);
    void *user;
};

enum link_state {
    LINK_HANDSHAKE, /* of the channel */
    LINK_HELLO,     /* ours is sent, the peer's is awaited */
    LINK_WELCOME,   /* the peer's was accepted, confirmed by a ping; its ping is awaited */
    LINK_OPEN,
    LINK_DRAINING, /* orderly end: waiting bytes are written, then the peer ends it */
    LINK_CLOSED,   /* `closed` was called */
};

/* A record being read; the record above it came between its bins. */
struct link_reader {
    struct decoder decoder;
    struct record record;
    struct link_reader *below;
};

struct link {
    atomic_int holders;
    const struct link_config *config; /* must live as long as any link */
    struct loop *loop;
    struct channel *channel;
    struct channel *offered; /* in shared memory, until the peer confirms it */
    size_t shared_bytes;     /* agreed by both sides */
    int fd;
    struct event *event;
    enum link_state state;       /* this and all members up to `out` belong to the loop's thread */
    bool dialed, was_open, safe; /* safe: the transport detects damage */
    bool ending;                 /* the peer sends nothing more: read up to the end */
    struct link_hello peer;
    double peer_lease;
    double peer_still;               /* how long its loop had been stalled, by its last ping */
    char *address, *name, *expected; /* the task that was dialed, or NULL */
    void *user;
    bool is_refused;           /* it ends before it is open because of what the peer does */
    double came;               /* when it was accepted */
    struct error unwanted;     /* with a code: the reason to refuse it once its hello came */
    struct loop_poller poller; /* of an open socket */
    struct loop_event *timer;  /* first for the handshake, then for the lease */
    double checked, silence;   /* time of the last check of the lease; silence at that time */
    uint64_t heard;            /* bytes_in then */
    uint64_t drained;          /* bytes_out at the last check of draining progress */

    struct link_reader outer;    /* of records that are in no other */
    struct link_reader *reading; /* the innermost */
    struct link_reader *spare;   /* one to reuse, or NULL */
    int depth;                   /* number of readers within `outer` */
    uint8_t *buffer;
    size_t start, end; /* of the buffered bytes */

    struct send_queue out;
    struct error why;         /* out.lock: why it is being closed */
    bool closing;             /* out.lock: link_close was called */
    struct error write_error; /* set by the writer */
    struct heartbeat_task heartbeat;
    double ping_seconds;
    uint64_t kept_out; /* for the heartbeat: bytes_out at its last look */
    double kept_at;    /* and when that changed */
    atomic_uint_least64_t bytes_in, bytes_out, records_in, records_out, shared_in, shared_out;
    atomic_uint_least64_t nested_in, tensors_in, tensors_out;
};

/* How far away the peer is. */
enum link_path {
    LINK_PLAIN, /* over a network, unencrypted */
    LINK_TLS,
    LINK_LOOPBACK, /* TCP on this host, with TLS or without */
    LINK_LOCAL,    /* a Unix socket, or a ring */
};

/* Takes ownership of the connected, non-blocking socket and its channel. The link owns itself: it
 * is freed after it was closed. `address` is for messages; `expected` is the task that was dialed,
 * or NULL. Does not call config's functions yet. */
struct link *link_new(struct loop *loop, const struct link_config *config, struct channel *channel,
                      const char *address, const char *expected, enum link_path path);

/* In the loop's thread. Each prefixes the reason with link_name, calls `closed`, and ends the link;
 * only the first reason counts. */
void link_fail(struct link *link, const struct error *why);
void link_refuse(struct link *link, const struct error *why); /* and tells the peer */
void link_ended(struct link *link);                           /* in an orderly way */

/* Ends it in an orderly way without waiting for the peer. */
void link_end_now(struct link *link);

/* The peer's hello came; it was accepted; and its ping came: the link is open. */
int link_take_hello(struct link *link, struct record *record, struct error *err);
void link_welcome(struct link *link);
void link_take_welcome(struct link *link, const struct record *record);

/* ---- writing (link_write.c) ---- */

/* As link_send, for the link's own records: also before the link is open. */
void link_send_own(struct link *link);

/* Adds the bytes of a record's tensors to the counter. */
void link_count_tensors(atomic_uint_least64_t *counter, const struct named_tensor *tensors, int n);

void link_can_write(struct link *link); /* called by the loop when there is room */
bool link_has_written(struct link *link);
void link_keep_alive(void *link); /* called by the heartbeat */

/* ---- reading (link_read.c) ---- */

void link_start_reading(struct link *link);
void link_stop_reading(struct link *link); /* permanently */
void link_can_read(struct link *link);

#endif
