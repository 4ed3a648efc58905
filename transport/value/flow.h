/* SPDX-License-Identifier: Apache-2.0
 *
 * A peer as its senders see it: the link, while there is one, and the credit that bounds the bytes
 * in flight. A value is sent at once while the receiver's credit lasts. Beyond that it is
 * announced, and sent when the receiver grants it: at once if a Recv waits for it, else when one
 * comes. So memory is bounded on the receiving side, and no value waits for memory that only its
 * own arrival would free.
 *
 * Thread-safe. Peers are reference-counted: sessions hold the peers that they send to beyond the
 * end of the link, and learn why it ended.
 */
#ifndef TF_TRANSPORT_FLOW_H
#define TF_TRANSPORT_FLOW_H

#include "exec/step/rendezvous.h"
#include "transport/link/link.h"

/* The cost of a value besides its bytes, for its place in a table. */
#define FLOW_VALUE_BYTES 256

struct peer;

/* Identifies a value of a step. */
struct value_id {
    uint64_t session, step;
    const char *key;
    uint64_t iteration;
    int32_t priority; /* of the sender, as in link_send_value; not in the record */
};

/* Reads the id of a record `value`, `announce` or `grant`, with priority 0; the key lives in the
 * record. Returns false if there is none. */
bool value_id_read(struct value_id *id, const struct record *record);

struct segments;

/* Creates a peer with one holder. `window`: bytes that either side may send without a grant.
 * `segments`: those of this process, for large values of peers that share memory; NULL: none. In
 * the loop's thread. */
struct peer *peer_new(struct link *link, uint64_t window, struct segments *segments);
struct peer *peer_retain(struct peer *peer);
void peer_release(struct peer *peer);

const char *peer_task(const struct peer *peer); /* "ps:0"; "" for a tool */
/* for messages: "ps:0 at 127.0.0.1:7000, incarnation 1" */
const char *peer_text(const struct peer *peer);

/* Returns whether its link goes through shared memory. In the loop's thread. */
bool peer_shares_memory(struct peer *peer);

/* The link is gone: drops the values that wait for a grant; sending fails with this reason. */
void peer_close(struct peer *peer, const struct error *why);

/* Locks the peer and starts a record. Returns NULL, unlocked, if the link is gone. peer_end sends
 * the packed record and unlocks. */
msgpack_packer *peer_begin(struct peer *peer, enum record_kind kind, int n_fields,
                           struct error *err);
int peer_end(struct peer *peer, const struct named_tensor *tensors, int n, struct error *err);
/* Ends a value as link_send_value does. */
int peer_end_value(struct peer *peer, int32_t priority, const struct named_tensor *tensors, int n,
                   struct error *err);

/* ---- values ---- */

/* Returns how much of the window a value (NULL: dead) takes. */
uint64_t flow_cost(const struct tensor *value);

/* Sends or announces a value in reference-counted memory; NULL: dead. */
int flow_send(struct peer *peer, const struct value_id *id, const struct tensor *value,
              struct error *err);
/* Drops the values that a step (0: all of the session's) has announced and that were not granted.
 * Not called for a step that succeeds here, as peers may grant its values later. */
void flow_forget(struct peer *peer, uint64_t session, uint64_t step);

/* A value arrived: charges it to the window. Returns false if the peer sent more than it may. */
bool flow_charge(struct peer *peer, uint64_t bytes);
/* A value was taken or dropped: returns its credit, in batches. */
void flow_return(struct peer *peer, uint64_t bytes);
/* Takes a record `share` in which the peer offers a value, and replies. *value has the type
 * DTYPE_INVALID if the value comes as bytes instead. ERR_PROTOCOL. */
int flow_take_shared(struct peer *peer, const struct record *record, struct tensor *value,
                     struct error *err);
/* Takes a record `share` that replies to an offer. ERR_PROTOCOL. */
int flow_answered(struct peer *peer, const struct record *record, struct error *err);
/* Allows the peer to send a value that it announced. */
void flow_grant(struct peer *peer, const struct value_id *id);
/* Takes a record `grant`. ERR_PROTOCOL. */
int flow_granted(struct peer *peer, const struct record *record, struct error *err);

#endif
