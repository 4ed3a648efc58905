/* SPDX-License-Identifier: Apache-2.0
 *
 * The records `reduce`, which members and servers send each other.
 */
#ifndef TF_TRANSPORT_COLLECTIVE_RECORD_H
#define TF_TRANSPORT_COLLECTIVE_RECORD_H

#include "transport/collective/collective_round.h"

struct chunk;

enum reduce_what {
    REDUCE_BRING, /* a member has called; contains its small values */
    REDUCE_PART,  /* a part of a chunk, for its owner */
    REDUCE_SUM,   /* a sum of a chunk, from its owner */
    REDUCE_LEAVE, /* the member leaves; index 1: it only announces that */
    REDUCE_LAST,  /* the member has been asked to end; its last begun step */
    REDUCE_JOIN, /* the link is open; to a member, a byte of the segment in which chunks will lie */
    REDUCE_REPLY, /* whether the receiver can read that */
    REDUCE_RELAY, /* a chunk that a server shall forward to the other members */
};

struct reduce {
    enum reduce_what what;
    const struct collective_round *round; /* NULL: no round of this process */
    const struct collective_call *call;   /* without a round, a server's; NULL: none */
    uint64_t index; /* of a chunk; the signature of a contribution; without a call, a number */
    const struct tensor *tensors;
    int n;
    const struct tensor *shared; /* instead of `tensors`: it is read in place, in a segment */
    const struct chunk *served;  /* the chunk, if it is sent to a server; NULL: to a member */
};

/* Records to an end that is gone are dropped. `group` is NULL for a server. */
void reduce_send_to(const struct process_group *group, struct peer *peer,
                    const struct reduce *reduce);
void reduce_send(struct process_group *group, int end, const struct reduce *reduce);
/* Sends to all other members. */
void reduce_send_all(struct process_group *group, const struct reduce *reduce);
/* Reads the key of a record of a round; returns false if it has none. */
bool reduce_read_key(const msgpack_object *header, struct collective_key *key, uint64_t *index);
/* As in struct conns_watcher; the watcher is a group's. */
int reduce_take(struct conns_watcher *watcher, struct peer *peer, const struct record *record,
                struct error *err);
bool reduce_place(struct conns_watcher *watcher, struct peer *peer, const struct record *record,
                  const struct tensor *like, struct tensor *t);

#endif
