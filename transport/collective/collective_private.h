/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of collectives between processes share. Private to transport. Files call each
 * other one way: record and group -> round -> chunk -> memory and send; contributions are the
 * round's.
 */
#ifndef TF_TRANSPORT_COLLECTIVE_PRIVATE_H
#define TF_TRANSPORT_COLLECTIVE_PRIVATE_H

#include <pthread.h>

#include "base/vec.h"
#include "collective/round.h"
#include "collective/schedule.h"
#include "transport/collective/collective.h"
#include "transport/link/recycle.h"
#include "transport/value/segment.h"

#define CHUNK_BYTES ((int64_t)SHARED_BLOCK_BYTES)
#define CHUNK_LEAST_BYTES ((int64_t)64 << 10) /* of one of several that an owner has */
#define RELAY_LEAST_BYTES ((int64_t)32 << 10) /* of one of several that a server passes on */
#define SCHEDULED_BYTES ((int64_t)64 << 10)   /* of a scheduled one: links wait for few */
#define CHUNKS_EACH 4                         /* that an owner has of a value, at least */
#define WINDOW_BYTES ((int64_t)1 << 20)       /* of parts on their way, at least */
#define WINDOW_CHUNKS 2                       /* and of such parts for each owner */
#define SMALL_BYTES COLLECTIVE_SMALL_BYTES    /* at most: all members send it to all */

enum reduce_what {
    REDUCE_BRING,  /* a member has called; what is small */
    REDUCE_PART,   /* of a chunk, for its owner */
    REDUCE_SUM,    /* of a chunk, from its owner */
    REDUCE_LEAVE,  /* the member takes no part in anything later, or but for calls with_leaving */
    REDUCE_LAST,   /* the member is to end, and has begun that step last */
    REDUCE_OFFER,  /* its memory, for chunks */
    REDUCE_ANSWER, /* whether the other can read that */
    REDUCE_READS,  /* it has heard of all: how much of what the other offered it reads */
    REDUCE_RELAY,  /* of a chunk, for a server, which passes it on to the other members */
    REDUCE_JOIN,   /* for a server, which answers: it knows where to send what is the member's */
};

#define TO_ALL (-2) /* as a chunk's peer: all other members */

/* A chunk of a large value. It is over when its program has been done here. */
struct chunk {
    uint64_t index; /* of which members speak */
    int value;
    int piece;            /* of a value that goes by the call's schedule; -1: it goes directly */
    int64_t first, count; /* elements */
    int64_t at;           /* in the result */
    const struct chunk_program *program; /* since the round is settled */
    int peer;                            /* the program's, an end; or TO_ALL */
    struct tensor *parts;                /* by end, or the whole; NULL: none has come */
    size_t n_done;                       /* actions */
    bool busy;                           /* somebody does one */
    bool has_sum;                        /* what is added so far, or the sum, is in the result */
    bool begun, over;
};
typedef VEC(struct chunk) chunk_vec;

/* The routing of a value that goes by rows; zeroed: it does not. */
struct routed_value {
    bool is_routed;
    int at;                    /* which of those that are */
    int64_t unit;              /* elements of a row */
    int64_t brought, wanted;   /* here */
    struct row_routes routing; /* since the round is settled */
    int64_t *counts;           /* the routing's */
};

struct memory_offer { /* of a large value, or of its sum */
    uint64_t value;
    struct segment_offer memory;
};

/* A member's contribution to a round. */
struct round_contribution {
    bool here;
    bool nothing;       /* it declines */
    uint64_t signature; /* of types, shapes and kinds */
    struct tensor *values;
    int n, n_taken; /* the values that follow are of what comes next in the call */
    int64_t *rows;  /* two for each value that goes by rows: brought, and wanted */
    int n_rows;
    struct memory_offer *offers;
    int n_offers;
    struct tensor *mapped; /* by value its part, and its sum; without data: they are sent */
    int n_given;           /* offers of this member's to it */
    bool answered;         /* how many of these, */
    int n_reads;           /* in their order, it reads */
    uint64_t number;       /* of a sum that devices add, from 1 on */
};

/* A call of all members. It is made by the first that is heard of, in the list until it is over,
 * and is freed by the last who holds it: the list, or a thread that works on it. */
struct collective_round {
    struct collective_round *next;
    int holders;
    char *name;
    struct collective_key key;
    enum round_state state;
    int32_t priority; /* of the call here; 0 before */

    /* Since the call here. */
    struct collective_waiter *waiter; /* NULL: nobody waits */
    int n;
    enum collective_kind *kinds;
    bool declined;                 /* instead: nobody waits for anything here */
    struct collective_group group; /* with whom it meets */
    bool has_root, wants;          /* as in the call, */
    bool by_servers;               /* and the group has some */
    bool with_leaving;             /* as in the call */
    int64_t root;                  /* a rank */
    struct tensor *own, *results;
    uint64_t signature;
    struct chunk *chunks, *late; /* late: of what goes by rows, behind those of the others */
    size_t n_chunks, n_late, n_missing;
    bool has_late;  /* some member has late ones; here are those that this one sends or gets */
    size_t n_begun; /* chunks: all before the next one that is to be begun */
    int64_t flying; /* bytes of begun chunks that come here, and are not here, */
    int64_t window; /* of which there are to be no more than so many */
    struct collective_schedule schedule;
    struct chunk_program *programs; /* since it is settled: by piece of the schedule; NULL: */
    int n_programs;                 /* nobody else takes part, or nothing goes by it */
    struct routed_value *routed;    /* by value */
    int n_routed;
    int *direct; /* values that others on the host read where they are */
    int n_direct;
    struct device_point at;       /* of the values, and of results */
    struct device_sum *on_device; /* NULL: they are in host memory */

    struct round_contribution *contributions; /* by rank */
    int *members;                             /* ranks of those that take part, and */
    int n_members;                            /* how many: all are known since it is settled */
    int place;                                /* of this one among them */
    struct collective_waiter *answered; /* who gets the results when nobody holds it any more */
};

/* The end of a link of this member's: another member, or a server. */
struct group_end {
    char *task;

    /* Since members have met; before, the loop's thread's own. */
    bool asked, shares;       /* it is to answer; it reads this member's blocks */
    struct shared_view *view; /* NULL: its values come over the link */

    /* With the group's lock: */
    struct peer *peer;  /* NULL: no link, or it is this member */
    bool left, leaving; /* leaving: it has said that it is about to */
    bool has_said;      /* which step it has begun last; this one since it has told all */
};

struct process_group {
    struct collective interface; /* first */
    struct hub *hub;
    int n_ends;
    struct group_end *ends; /* the members, by rank, and behind them the servers */
    struct hub_watcher watcher;
    struct hub_reducer reducer;
    struct recycle *memory;   /* of results */
    struct device_sums *sums; /* NULL: no devices add; set before the first step */
    struct error dial;        /* of one that was given up; the loop's thread's own */
    struct collective_leave leaving_heard;

    struct shared_blocks *shared; /* NULL: there is none */

    pthread_mutex_t lock; /* guards what follows, and rounds; held briefly, never while calling */
    struct error failed;  /* a member is lost; nothing can meet any more */
    struct collective_round *rounds;
    size_t n_uncalled;
    int64_t begun;     /* the last step here */
    int64_t last_step; /* the latest that anybody has begun, of those that have said it */
    int first;         /* the least rank in the round that was settled last */

    int n_calls; /* that have not returned: of those whose waiters were told, too */
    pthread_cond_t returned;
};

/* ---- the group (collective.c) ---- */

/* Ends the links to all members; NULL: in an orderly way. Any thread. */
void collective_close_links(struct process_group *group, const struct error *why);

/* A call that was begun goes on, unless *err says why not: the others are told. */
void call_tell(struct process_group *group, struct collective_round *round, struct error *err);
/* In the round's place there is one of another call, for who waits, if anybody still does. */
void call_replace(struct process_group *group, struct collective_round *before,
                  const struct collective_call *call);

static inline bool is_server(const struct process_group *group, int end)
{
    return end >= group->interface.size;
}
static inline int count_servers(const struct process_group *group)
{
    return group->n_ends - group->interface.size;
}
/* A server that chunk `number` of the round goes by: they take turns, and rounds of few do not all
 * begin with the same one. */
int server_of(const struct process_group *group, const struct collective_round *round,
              uint64_t number);

/* Wakes the one that runs the loop until something is true. Any thread. */
void group_wake(struct process_group *group);
/* Takes the word that the member has begun the step last, and all are to end (collective_join.c).
 * */
void end_take(struct process_group *group, int rank, int64_t step);

/* ---- sums by devices (collective_device.c) ---- */

/* With the lock: the round's call has values on the group's device. */
void device_sum_new(struct process_group *group, struct collective_round *round,
                    const struct collective_call *call);
void device_sum_free(struct device_sum *sum);
/* Goes on with the call when the values are there. */
void device_sum_await(struct device_sum *sum);
/* The round is settled, and some member has left. */
void device_sum_to_host(struct device_sum *sum);

/* With the lock: a round is over; its number, if it has one, is not waited for any more. */
void device_sums_pass(struct device_sums *sums, const struct collective_round *round);
/* With the lock: a round runs. */
void device_sums_wake(struct device_sums *sums);
/* With the lock: nothing is enqueued any more, and the communicator is aborted, soon. */
void device_sums_give_up(struct device_sums *sums, const struct error *why);
void device_sums_free(struct device_sums *sums);

/* ---- rounds (collective_round.c) ---- */

/* With the lock: the one of that key; NULL: there is none. round_get makes it if need be. Neither
 * is held for the caller. */
struct collective_round *round_find(struct process_group *group, const struct collective_key *key);
struct collective_round *round_get(struct process_group *group, const struct collective_key *key);
void round_drop(struct process_group *group, struct collective_round *round);
/* With the lock: whether that member has left the call's members; whether it is of the group. */
bool round_lacks(const struct process_group *group, const struct collective_round *round, int rank);
bool round_meets(const struct process_group *group, const struct collective_round *round, int rank);
/* With the lock: this member's call, or it declines. ERR_OS: no memory. */
int round_call(struct process_group *group, struct collective_round *round,
               const struct collective_call *call, struct error *err);
void round_decline(struct process_group *group, struct collective_round *round,
                   const struct collective_group *members);
/* Tells the others of it, unless *err says why not. */
void round_tell(struct process_group *group, struct collective_round *round, struct error *err);
/* Goes on with all rounds that settle, as a member has left. */
void rounds_settle(struct process_group *group);

/* With the lock: takes it off the list, and gives its waiter; it is over. */
struct collective_waiter *round_end(struct process_group *group, struct collective_round *round);
void round_fail(struct process_group *group, struct collective_round *round,
                const struct error *err);
/* Does what may be done since something has come: settles it, begins chunks, and answers the call
 * if all is there, when nobody holds the round any more. */
void round_go_on(struct process_group *group, struct collective_round *round);

/* ---- what members contribute (collective_contribution.c) ---- */

struct reduce;

/* With the lock: which values of the call go by rows. */
void rows_call(struct process_group *group, struct collective_round *round,
               const struct collective_call *call);
void rows_free(struct collective_round *round);
/* Returns whether a value that does not go by rows is contributed, not sent in chunks. */
bool round_is_small(const struct collective_round *round, int value);
/* Tells the other members; the fields of such a record, and how many they are. */
void contribution_send(struct process_group *group, struct collective_round *round);
int contribution_fields(const struct reduce *reduce);
void contribution_pack(const struct process_group *group, msgpack_packer *packer,
                       const struct reduce *reduce);
/* With the lock: what another contributes. ERR_PROTOCOL. */
int contribution_take(struct process_group *group, struct collective_round *round, int rank,
                      uint64_t signature, const struct record *record, struct error *err);
/* The round is settled: makes results of what is small, and cuts rows that are not in chunks. */
int contributions_combine(struct process_group *group, struct collective_round *round,
                          struct error *err);
/* Makes a piece of a sum of rows their mean. */
void rows_divide(const struct collective_round *round, int value, struct tensor *piece);

/* ---- chunks (collective_chunk.c) ---- */

/* Cuts what flows bring, each of one value over one way, in chunks of at most so many elements.
 * They take turns, and indices of one are n_flows apart. Leaves no flows. */
void chunks_append(chunk_vec *chunks, chunk_vec *flows, uint64_t n_flows, int64_t most);
/* With the lock: those of the call. */
void chunks_cut(const struct process_group *group, struct collective_round *round);
/* With the lock: it is known who takes part. */
void chunks_settle(const struct process_group *group, struct collective_round *round);
void chunks_free(const struct process_group *group, struct collective_round *round);
/* With the lock: the one of that index; NULL: there is none. */
struct chunk *chunk_find(const struct collective_round *round, uint64_t index);
/* Returns whether the value goes by the round's schedule. */
bool value_is_scheduled(const struct collective_round *round, int value);
/* Returns whether a chunk's sum stays with its owner, who only says that it is there. */
static inline bool chunk_stays(const struct collective_round *round, const struct chunk *chunk)
{
    return round->routed[chunk->value].is_routed && collective_adds(round->kinds[chunk->value]);
}
/* Begins chunks as long as not too much is on its way. */
void chunks_begin(struct process_group *group, struct collective_round *round);
/* With the lock: keeps that end's part of it, or what is whole, for the action that wants it.
 * False: none does. Then, without the lock, does what can be done. */
bool chunk_take(const struct process_group *group, const struct collective_round *round,
                struct chunk *chunk, int end, bool is_whole, const struct tensor *piece);
void chunk_advance(struct process_group *group, struct collective_round *round,
                   struct chunk *chunk);
/* With the lock: whether what is whole may be read to its place as it comes from that end. */
bool chunk_has_place(const struct process_group *group, const struct collective_round *round,
                     const struct chunk *chunk, int end);
/* Elements of a tensor as one of its own; shares the memory. */
struct tensor tensor_piece(const struct tensor *t, int64_t first, int64_t count);

/* ---- records (collective_record.c) ---- */

struct reduce {
    enum reduce_what what;
    const struct memory_offer *offers; /* of what is contributed */
    int n_offers;
    const struct collective_round *round; /* NULL: of none here */
    const struct collective_key *key;     /* without it, of a server's; NULL: it is of none, and */
    int32_t priority;
    uint64_t index; /* of a chunk; the signature of a contribution; of no round, a number */
    const struct shared_offer *blocks; /* instead of that */
    const struct tensor *tensors;
    int n;
    bool is_shared; /* instead of tensors */
    uint64_t shared;
    bool is_there;              /* instead: the sum is in the memory that was offered */
    const struct chunk *served; /* it goes to this one's server; NULL: to a member */
};

/* A record to an end that is gone is dropped. A server has no group. */
void reduce_send_to(const struct process_group *group, struct peer *peer,
                    const struct reduce *reduce);
void reduce_send(struct process_group *group, int end, const struct reduce *reduce);
/* Reads the key of a record of a round; false: it has none. */
bool reduce_read_key(const msgpack_object *header, struct collective_key *key, uint64_t *index);
int reduce_take(void *group, struct peer *peer, const struct record *record, struct error *err);
bool reduce_place(void *group, struct peer *peer, const struct record *record,
                  const struct tensor *like, struct tensor *t);

/* ---- shared memory for chunks (collective_memory.c) ---- */

/* The link to it is there. */
void shared_offer_to(struct process_group *group, int rank);
int shared_take_offer(struct process_group *group, int rank, const msgpack_object *header,
                      struct error *err);
int shared_take_answer(struct process_group *group, int rank, bool has_it, struct error *err);
/* A block of so many bytes, of a value of that kind, for so many readers, to be filled; -1: they
 * are to be sent. */
int shared_block(struct process_group *group, enum collective_kind kind, size_t bytes, int readers,
                 void **data);
/* The member's block as bytes, given back by the last who holds it. ERR_PROTOCOL. */
int shared_read(struct process_group *group, int rank, uint64_t block, struct tensor *t,
                struct error *err);

/* ---- values that are read where they are (collective_memory.c) ---- */

/* With the lock: which ones these are. */
void direct_choose(const struct process_group *group, struct collective_round *round);
/* Offers a value to that member, counted for it; the offer is to be sent. */
int direct_offer(struct process_group *group, struct collective_round *round, int rank,
                 struct memory_offer **offers);
void direct_pack(msgpack_packer *packer, const struct memory_offer *offers, int n);
/* False: it is malformed. */
bool direct_read(const struct record *record, struct round_contribution *contribution);
/* The round is settled: maps what was offered, and answers. ERR_PROTOCOL. */
int direct_take(struct process_group *group, struct collective_round *round, struct error *err);
/* With the lock: that member's answer. False: it was not asked. */
bool direct_take_answer(struct collective_round *round, int rank, uint64_t n);
/* With the lock: whether all who are to answer have. */
bool direct_agreed(const struct process_group *group, const struct collective_round *round);
/* Returns whether the member reads this one's value and its sums, since then. */
bool direct_is_read(const struct collective_round *round, int rank, int value);
/* and where this one reads the member's. NULL: they are sent. */
const struct tensor *direct_part(const struct collective_round *round, int rank, int value);
const struct tensor *direct_sum(const struct collective_round *round, int rank, int value);

#endif
