/* SPDX-License-Identifier: Apache-2.0
 *
 * A peer as those who send to it see it: the link while there is one, and the credit that bounds
 * what may be on its way. A value goes out at once while the receiver's credit lasts; beyond that
 * it is announced, and follows when the receiver grants it: at once if a Recv waits for it, else
 * when one comes. So memory is bounded on the receiving side and nothing ever waits for memory that
 * only its own arrival would free.
 *
 * Thread-safe. Peers are counted: sessions keep those that they send to beyond the end of the link,
 * and are told why it ended.
 */
#ifndef TF_TRANSPORT_FLOW_H
#define TF_TRANSPORT_FLOW_H

#include "exec/step/rendezvous.h"
#include "transport/link/link.h"

/* The cost of a value besides its bytes: its place in a table. */
#define FLOW_VALUE_BYTES 256

struct peer;

/* Identifies a value of a step. */
struct value_id {
    uint64_t session, step;
    const char *key;
    uint64_t iteration;
    int32_t priority; /* of who sends it, as of link_send_value; the record does not say it */
};

/* Reads the id of a record `value`, `announce` or `grant`, with priority 0; the key lives in the
 * record. False: not there. */
bool value_id_read(struct value_id *id, const struct record *record);

struct segments;

/* One holder. `window`: bytes that may come without having been granted, on either side.
 * `segments`: of this process, for large values of peers that share memory; NULL: none. In the
 * loop's thread. */
struct peer *peer_new(struct link *link, uint64_t window, struct segments *segments);
struct peer *peer_retain(struct peer *peer);
void peer_release(struct peer *peer);

const char *peer_task(const struct peer *peer); /* "ps:0"; "" for a tool */
/* "ps:0 at 127.0.0.1:7000, incarnation 1": for messages. */
const char *peer_text(const struct peer *peer);

/* Returns whether its link goes through shared memory. In the loop's thread. */
bool peer_shares_memory(struct peer *peer);

/* The statistics of its link; false when that is gone. */
bool peer_stats(struct peer *peer, struct link_stats *stats);

/* The link is gone: what waits for a grant is dropped, sending fails with this reason. */
void peer_close(struct peer *peer, const struct error *why);

/* Locks the peer and starts a record; NULL, unlocked, when the link is gone. peer_end sends what
 * was packed and unlocks. */
msgpack_packer *peer_begin(struct peer *peer, enum record_kind kind, int n_fields,
                           struct error *err);
int peer_end(struct peer *peer, const struct named_tensor *tensors, int n, struct error *err);
/* Ends a value as link_send_value does. */
int peer_end_value(struct peer *peer, int32_t priority, const struct named_tensor *tensors, int n,
                   struct error *err);

/* ---- values ---- */

/* Returns how much of the window a value (NULL: dead) takes. */
uint64_t flow_cost(const struct tensor *value);

/* Sends or announces. value: reference-counted memory, NULL: dead. */
int flow_send(struct peer *peer, const struct value_id *id, const struct tensor *value,
              struct error *err);
/* Forgets what a step (0: all of the session's) has announced and was not granted. Values of a step
 * that is over here stay: others may ask for them later. */
void flow_forget(struct peer *peer, uint64_t session, uint64_t step);

/* A value came: charges it to the window. False when the peer sent more than it may. */
bool flow_charge(struct peer *peer, uint64_t bytes);
/* It was taken or dropped: the credit goes back, in batches. */
void flow_return(struct peer *peer, uint64_t bytes);
/* The record `share` of the peer that offers a value: of *value the type DTYPE_INVALID if it comes
 * as bytes instead. ERR_PROTOCOL. */
int flow_take_shared(struct peer *peer, const struct record *record, struct tensor *value,
                     struct error *err);
/* The record `share` that replies. ERR_PROTOCOL. */
int flow_answered(struct peer *peer, const struct record *record, struct error *err);
/* Allows what was announced. */
void flow_grant(struct peer *peer, const struct value_id *id);
/* The record `grant` of the peer. ERR_PROTOCOL. */
int flow_granted(struct peer *peer, const struct record *record, struct error *err);

#endif
