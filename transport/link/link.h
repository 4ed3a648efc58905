/* SPDX-License-Identifier: Apache-2.0
 *
 * A link carries records (wire/record.h) both ways between two processes: over a socket, plain or
 * under TLS, or through shared memory. Each side first sends a hello, then any number of records;
 * each record arrives once, or the link is closed with the reason. Records of link_send arrive in
 * order; values (link_send_value) are sent when nothing more urgent waits.
 *
 * Links are made by a set of peers (transport/link/peers.h), which dials and listens.
 *
 * Life cycle: a link lives until its `closed` was called; to keep it longer, or to use it in
 * another thread than the loop's, hold it (link_retain, link_release). After it was closed, sending
 * fails with the reason and has no other effect.
 *
 * An idle side sends a ping every third of the lease, whatever its loop does; the ping says for how
 * long the loop has been stalled. A side that receives nothing for a lease closes the link. Only
 * time during which its own loop runs counts.
 */
#ifndef TF_TRANSPORT_LINK_H
#define TF_TRANSPORT_LINK_H

#include "transport/loop/loop.h"
#include "wire/record.h"

struct link;

/* All are called in the thread that runs the loop. They may send, and close links, including this
 * one. */
struct link_handler {
    void *context;

    /* Both hellos were exchanged: link_peer describes the peer. May be NULL. */
    void (*opened)(void *context, struct link *link);

    /* A record arrived (other than pings and hellos). The link owns it: tensors may be shared, all
     * else is valid until the call returns. */
    void (*record)(void *context, struct link *link, struct record *record);

    /* Called exactly once for a link that was opened. why->code is 0 after an orderly end by either
     * side; else the first cause, which starts with link_name: ERR_UNAVAILABLE (connection reset,
     * silent for a lease, replaced by a newer incarnation), ERR_PROTOCOL, ERR_DATA (damage), or the
     * peer's error if it closed the link with one. */
    void (*closed)(void *context, struct link *link, const struct error *why);

    /* Chooses memory for the next tensor of a record whose header has arrived: *t, a
     * reference-counted buffer of like's type and shape, which a damaged or incomplete tensor may
     * leave changed. False: the link allocates. May be NULL. */
    bool (*place)(void *context, struct link *link, const struct record *record,
                  const struct tensor *like, struct tensor *t);
};

/* One end of a link. */
struct link_hello {
    const char *task;     /* "ps:0", "worker:1"; "" for a tool */
    uint64_t incarnation; /* larger for a later start of the task; at most INT64_MAX */
};

/* Starts a record. The caller packs exactly n_fields key/value pairs (pack_key, ...), then calls
 * link_send. Other threads that send over the link wait meanwhile, so the caller must be quick and
 * must make no other call on this link. */
msgpack_packer *link_begin(struct link *link, enum record_kind kind, int n_fields);

/* Sends the record: writes what the system accepts at once, from the calling thread, and leaves the
 * rest to the loop. Never blocks. Tensors are in host memory, row-major. Reference-counted buffers
 * are shared until written; borrowed memory is copied if it cannot be written at once. Any thread.
 * ERR_DATA: the format cannot carry the record, which was not sent. After the link was closed: the
 * reason's code and text. */
int link_send(struct link *link, const struct named_tensor *tensors, int n_tensors,
              struct error *err);

/* Priorities of records: smaller ones are more urgent. */
#define LINK_FIRST INT32_MIN /* for link_send */
#define LINK_LAST INT32_MAX  /* for the end of the link, which comes after everything sent */

/* As link_send, for records that may come later than others: records of smaller priority are sent
 * before it, and between its bins; records of equal priority arrive in order. */
int link_send_value(struct link *link, int32_t priority, const struct named_tensor *tensors,
                    int n_tensors, struct error *err);

/* Returns the bytes waiting to be written, for senders with limits of their own. Any thread. */
uint64_t link_waiting(const struct link *link);

/* Ends the link. why NULL: in an orderly way, after everything sent before, as long as each lease
 * sees some of it written. With an error: at once; the peer is told its code and text if possible.
 * `closed` is called later from the loop, never from within this call. Any thread; only the first
 * call counts. */
void link_close(struct link *link, const struct error *why);

void link_retain(struct link *link);
void link_release(struct link *link);

/* Returns the peer's description of itself; valid as long as the link. Empty before it is open. */
const struct link_hello *link_peer(const struct link *link);

/* For messages: "ps:0 at 127.0.0.1:7000, incarnation 3"; "peer at ..." before the hello. */
const char *link_name(const struct link *link);

/* A pointer for the user. */
void link_set_user(struct link *link, void *user);
void *link_user(const struct link *link);

/* Returns the seconds since anything came from the peer, which sends several times per lease. Time
 * during which this process slept does not count. In the loop's thread. */
double link_silence(const struct link *link);

/* Returns for how many seconds the peer's loop had been stalled at its last ping: the peer is alive
 * but does not handle requests. 0: not, or too short to matter. In the loop's thread. */
double link_stillness(const struct link *link);

/* Returns whether the link uses shared memory. In the loop's thread. */
bool link_shares_memory(const struct link *link);

struct link_stats {
    uint64_t bytes_in, bytes_out, records_in, records_out; /* pings and hellos included */
    uint64_t shared_in, shared_out; /* bytes of values that stayed where they were
                                       (transport/value/flow.c) */
    uint64_t nested_in;             /* records that came while less urgent ones were under way */
    uint64_t values_in, values_out; /* bytes of tensors alone, those that were shared included; of
                                       what goes out, as soon as it is handed over */
};

/* Counts bytes of values that were shared. Any thread. */
void link_count_shared(struct link *link, uint64_t in, uint64_t out);

struct link_stats link_stats(const struct link *link); /* any thread */

#endif
