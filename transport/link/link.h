/* SPDX-License-Identifier: Apache-2.0
 *
 * A link carries records (wire/record.h) both ways between two processes: over the bytes of a
 * socket, plain or under TLS, or through shared memory. First each side sends a hello, then records
 * follow in any number; each arrives once, or the link is closed with the reason. Records of
 * link_send arrive in order; values (link_send_value) come when nothing more urgent waits.
 *
 * Links come from a set of peers (transport/link/peers.h), which dials and listens.
 *
 * Life: a link lives until its `closed` was called; who keeps one longer, or uses it in a thread
 * other than the loop's, holds it (link_retain, link_release). After it was closed sending fails
 * with the reason, and nothing else happens.
 *
 * A side that has nothing to send sends a ping every third of the lease, whatever its loop does; it
 * says for how long that has stood still. One that hears nothing for a lease closes the link. Only
 * time during which the loop runs counts as hearing nothing.
 */
#ifndef TF_TRANSPORT_LINK_H
#define TF_TRANSPORT_LINK_H

#include "transport/loop/loop.h"
#include "wire/record.h"

struct link;

/* All are called in the thread that runs the loop. They may send, and close links, this one too. */
struct link_handler {
    void *context;

    /* Both hellos are through: the peer is who link_peer says. May be NULL. */
    void (*opened)(void *context, struct link *link);

    /* A record came (pings and hellos excepted). It is the link's: tensors may be shared, the rest
     * is valid until the call returns. */
    void (*record)(void *context, struct link *link, struct record *record);

    /* Exactly once for a link that was opened. why->code is 0 when either side ended it in an
     * orderly way; else the first cause, which starts with link_name: ERR_UNAVAILABLE (connection
     * reset, silent for a lease, replaced by a newer incarnation), ERR_PROTOCOL, ERR_DATA (damage),
     * or what the peer said when it closed the link with an error. */
    void (*closed)(void *context, struct link *link, const struct error *why);

    /* Where the next tensor of a record is read to, of which the header is there: *t, counted
     * memory of like's type and shape, which damaged or half a tensor may leave changed. False:
     * memory of its own. May be NULL. */
    bool (*place)(void *context, struct link *link, const struct record *record,
                  const struct tensor *like, struct tensor *t);
};

/* The party at an end of a link. */
struct link_hello {
    const char *job;      /* "" for one without; peers of different jobs refuse each other */
    const char *task;     /* "ps:0", "worker:1"; "" for a tool */
    uint64_t incarnation; /* larger for a later start of the task; at most INT64_MAX */
};

/* Starts a record. The caller packs exactly n_fields key/value pairs (pack_key, ...), then calls
 * link_send; other threads that want to send over the link wait in between, so it must be soon and
 * without any other call on this link. */
msgpack_packer *link_begin(struct link *link, enum record_kind kind, int n_fields);

/* Sends the record: writes what the system takes at once, from the calling thread, and leaves the
 * rest to the loop. Never blocks. Tensors are in host memory, row-major. Memory that is counted is
 * shared until it is written; what borrows is copied when it cannot be written at once. Any thread.
 * ERR_DATA: a record that the format does not carry, not sent. After the link was closed: the
 * reason's code and text. */
int link_send(struct link *link, const struct named_tensor *tensors, int n_tensors,
              struct error *err);

/* Priorities of records: smaller ones are more urgent. */
#define LINK_FIRST INT32_MIN /* of what link_send sends */
#define LINK_LAST INT32_MAX  /* of the end of the link, which comes behind all that was sent */

/* As link_send, for what may come later than other records: those with a smaller priority go out
 * before it, and while it is under way; those with the same arrive in order. */
int link_send_value(struct link *link, int32_t priority, const struct named_tensor *tensors,
                    int n_tensors, struct error *err);

/* Bytes that wait to be written: a sender that has its own limits asks. Any thread. */
uint64_t link_waiting(const struct link *link);

/* Ends the link. why NULL: in an orderly way, behind what was sent before, as long as some of
 * that gets through within each lease. With an error: at once, and the peer is told its code and
 * text where it can be. `closed` follows from the loop, never from within this call. Any thread;
 * only the first call counts. */
void link_close(struct link *link, const struct error *why);

void link_retain(struct link *link);
void link_release(struct link *link);

/* Returns the peer's description of itself; valid as long as the link. Empty before it is opened.
 * */
const struct link_hello *link_peer(const struct link *link);

/* For messages: "ps:0 at 127.0.0.1:7000, incarnation 3"; "peer at ..." before it is known. */
const char *link_name(const struct link *link);

/* Returns whether this side dialed. */
bool link_is_dialed(const struct link *link);

/* A place for the user's pointer. */
void link_set_user(struct link *link, void *user);
void *link_user(const struct link *link);

/* Seconds since something came from the peer, which sends something several times in a lease. Not
 * what passed while this process slept. In the loop's thread. */
double link_silence(const struct link *link);

/* Seconds that the peer's loop had stood still when the last ping came: it is alive, but does not
 * get to what it is asked. 0: none, or less than is worth telling. In the loop's thread. */
double link_stillness(const struct link *link);

/* Returns whether its bytes go through shared memory. In the loop's thread. */
bool link_shares_memory(const struct link *link);

struct link_stats {
    uint64_t bytes_in, bytes_out, records_in, records_out; /* pings and hellos included */
    uint64_t shared_in, shared_out; /* bytes of values that stayed where they were
                                       (transport/value/flow_shared.h) */
    uint64_t nested_in;             /* records that came while less urgent ones were under way */
    uint64_t values_in, values_out; /* bytes of tensors alone, those that were shared included; of
                                       what goes out, as soon as it is handed over */
};

/* Counts bytes of values that were shared. Any thread. */
void link_count_shared(struct link *link, uint64_t in, uint64_t out);

struct link_stats link_stats(const struct link *link); /* any thread */

#endif
