/* SPDX-License-Identifier: Apache-2.0
 *
 * The records `reduce`, which members send each other, and servers.
 */
#ifndef TF_TRANSPORT_COLLECTIVE_RECORD_H
#define TF_TRANSPORT_COLLECTIVE_RECORD_H

#include "transport/collective/collective_round.h"

struct chunk;

enum reduce_what {
    REDUCE_BRING, /* a member has called; what is small */
    REDUCE_PART,  /* of a chunk, for its owner */
    REDUCE_SUM,   /* of a chunk, from its owner */
    REDUCE_LEAVE, /* the member takes no part in anything later, or but for calls with_leaving */
    REDUCE_LAST,  /* the member is to end, and has begun that step last */
    REDUCE_OFFER, /* its segment, for chunks */
    REDUCE_REPLY, /* whether the other can read that */
    REDUCE_READY, /* it has heard of all, and knows the chunks of rows */
    REDUCE_RELAY, /* of a chunk, for a server, which passes it on to the other members */
    REDUCE_JOIN,  /* for a server, which answers: it knows where to send what is the member's */
};

struct reduce {
    enum reduce_what what;
    const struct collective_round *round; /* NULL: of none here */
    const struct collective_key *key;     /* without it, of a server's; NULL: it is of none, and */
    int32_t priority;
    uint64_t index; /* of a chunk; the signature of a contribution; of no round, a number */
    const struct tensor *tensors;
    int n;
    const struct tensor *shared; /* instead of these: it is read where it is, in a segment */
    const struct chunk *served;  /* it goes to this one's server; NULL: to a member */
};

/* A record to an end that is gone is dropped. A server has no group. */
void reduce_send_to(const struct process_group *group, struct peer *peer,
                    const struct reduce *reduce);
void reduce_send(struct process_group *group, int end, const struct reduce *reduce);
/* To all other members. */
void reduce_send_all(struct process_group *group, const struct reduce *reduce);
/* The link to it is there: offers it this member's segment. */
void segment_offer_to(struct process_group *group, int rank);
/* Reads the key of a record of a round; false: it has none. */
bool reduce_read_key(const msgpack_object *header, struct collective_key *key, uint64_t *index);
int reduce_take(void *group, struct peer *peer, const struct record *record, struct error *err);
bool reduce_place(void *group, struct peer *peer, const struct record *record,
                  const struct tensor *like, struct tensor *t);

#endif
