/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of collectives between processes share. Private to transport.
 */
#ifndef TF_TRANSPORT_COLLECTIVE_PRIVATE_H
#define TF_TRANSPORT_COLLECTIVE_PRIVATE_H

#include <pthread.h>

#include "collective/program.h"
#include "transport/collective/collective.h"
#include "transport/link/recycle.h"
#include "transport/value/segment.h"

#define BLOCK_BYTES ((int64_t)SHARED_BLOCK_BYTES)
#define BLOCK_LEAST_BYTES ((int64_t)64 << 10) /* of one of several that an owner has */
#define RELAY_LEAST_BYTES ((int64_t)32 << 10) /* of one of several that a server passes on */
#define BLOCKS_EACH 4                      /* that an owner has of a value, if it can be cut so */
#define WINDOW_BYTES ((int64_t)1 << 20)    /* of parts on their way, at least */
#define WINDOW_BLOCKS 2                    /* and of such parts for each owner */
#define SMALL_BYTES COLLECTIVE_SMALL_BYTES /* at most: all members send it to all */

struct reduce;

enum reduce_what {
    REDUCE_BRING,  /* a member has called; what is small */
    REDUCE_PART,   /* of a block, for its owner */
    REDUCE_SUM,    /* of a block, from its owner */
    REDUCE_LEAVE,  /* the member takes no part in anything later, or but for calls with_leaving */
    REDUCE_LAST,   /* the member is to end, and has begun that step last */
    REDUCE_OFFER,  /* its memory, for blocks */
    REDUCE_ANSWER, /* whether the other can read that */
    REDUCE_READS,  /* it has heard of all: how much of what the other offered it reads */
    REDUCE_RELAY,  /* of a block, for a server, which passes it on to the other members */
    REDUCE_JOIN,   /* for a server, which answers: it knows where to send what is the member's */
};

#define TO_ALL (-1)

struct block {      /* of a large value */
    uint64_t index; /* of which members speak */
    int value;
    int64_t first, count; /* elements */
    int64_t at;           /* in the result of who gets it */
    int owner; /* rank, or of a sum by servers the end; known when the round is settled */
    int relay; /* the server's end that passes on what the owner has; 0: none does */
    int to;    /* who gets what the owner has; or TO_ALL */
    struct tensor *parts; /* by rank */
    bool claimed;         /* somebody adds the parts; of a scheduled one, does what is next */
    bool begun;           /* here */
    bool done;            /* the result has it */
    bool is_scheduled;    /* it goes by the round's schedule (collective_scheduled.c): */
    int part;             /* of the value, which says which way */
    size_t n_done;        /* of what this member does about it */
    bool has_sum;         /* what is added so far, or the sum, is in the result */
};

/* Of a value that goes by rows; zeroed: it does not. */
struct routed_value {
    bool is_routed;
    int64_t unit;                      /* elements of a row */
    int64_t brought, wanted;           /* here */
    struct collective_routing routing; /* since the round is settled */
    int64_t *counts;                   /* the routing's */
};

struct direct_offer { /* memory of a large value, or of its sum */
    uint64_t value;
    struct segment_offer memory;
};

struct brought {
    bool here;
    bool nothing;       /* it declines */
    uint64_t signature; /* of types, shapes and kinds */
    struct tensor *values;
    int n;
    int64_t *rows; /* two for each value that goes by rows: brought, and wanted */
    int n_rows;
    int n_parted; /* for how many members its parts were made */
    struct direct_offer *offers;
    int n_offers;
    struct tensor *parts, *sums; /* by value, where it has them; without data: they are sent */
    int n_given;                 /* offers of this member's to it */
    bool answered;               /* how many of these, */
    int n_reads;                 /* in their order, it reads */
};

/* A call of all members. It is made by the first that is heard of, in the list until it is over,
 * and is freed by the last who holds it: the list, or a thread that works on it. */
struct collective_round {
    struct collective_round *next;
    int holders;
    char *name;
    struct collective_key key;
    int32_t priority; /* of the call here; 0 before */

    /* Since the call here. */
    bool called;
    struct collective_waiter *waiter; /* NULL: not called, or over */
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
    struct block *blocks, *late; /* late: of what goes by rows, behind those of the others */
    size_t n_blocks, n_late, n_missing;
    bool has_late;  /* some member has late ones; here are those that this one sends or gets */
    size_t n_begun; /* blocks: all before the next one that is to be begun */
    int64_t flying; /* bytes of begun blocks that come here, and are not here, */
    int64_t window; /* of which there are to be no more than so many */
    struct collective_schedule schedule;
    struct chunk_program *programs; /* since it is settled: by piece of the schedule; NULL: */
    int n_programs;                 /* nobody else takes part, or nothing goes by it */
    struct routed_value *routed;    /* by value */
    int n_routed;
    bool *assumed; /* by rank: who had not left when this member came, */
    int n_assumed; /* as many: they may take part */
    int *direct;   /* values that others on the host read where they are */
    int n_direct;
    bool agreed; /* what others read is known: blocks may be begun */

    struct brought *brought; /* by rank */
    bool announced;          /* the others were sent what is brought here */
    int *members;            /* ranks of those that take part, and */
    int n_members;           /* how many: all are known since it is settled */
    bool settled, combined;  /* combined: what is small is there */
    bool over;
    struct collective_waiter *answered; /* who gets the results when nobody holds it any more */
};

struct process_group {
    struct collective interface; /* first */
    struct hub *hub;
    int n_ends;   /* of links: the members, by rank, and behind them the servers */
    char **tasks; /* by end, as all arrays of the group are */
    struct hub_watcher watcher;
    struct hub_reducer reducer;
    struct recycle *memory;   /* of results */
    struct device_sums *sums; /* NULL: no devices add; set before the first step */
    struct error dial;        /* of one that was given up; the loop's thread's own */
    struct collective_leaving leaving_heard;

    /* Since members have met; before, the loop's thread's own. */
    struct shared_blocks *shared; /* NULL: there is none */
    bool *asked, *shares;         /* who is to answer; who reads this member's blocks */
    struct shared_view **views;   /* NULL: its values come over the link */

    pthread_mutex_t lock; /* guards what follows, and rounds; held briefly, never while calling */
    struct peer **peers;  /* NULL: no link, or it is this member */
    bool *left, *leaving; /* leaving: it has said that it is about to */
    struct error failed;  /* a member is lost; nothing can meet any more */
    struct collective_round *rounds;
    size_t n_uncalled;
    int64_t begun;     /* the last step here */
    bool *has_said;    /* which step it has begun last; this one since it has told all */
    int64_t last_step; /* the latest that anybody has begun, of those that have said it */
    int first;         /* the least rank in the round that was settled last */

    int n_calls; /* that have not returned: of those whose waiters were told, too */
    pthread_cond_t returned;
};

/* Ends the links to all members; NULL: in an orderly way. Any thread. */
void collective_close_links(struct process_group *group, const struct error *why);

/* ---- calls over links (collective.c) ---- */

/* Of values in host memory, as in the interface. */
void links_reduce(struct collective *collective, const struct collective_call *call,
                  struct collective_waiter *waiter);
bool links_cancel(struct collective *collective, struct collective_waiter *waiter);

/* ---- rounds (collective_round.c) ---- */

/* With the lock: the one of that key; NULL: there is none. */
struct collective_round *round_find(struct process_group *group, const struct collective_key *key);
/* With the lock: as round_find, made if need be. Not held for the caller. */
struct collective_round *round_get(struct process_group *group, const struct collective_key *key);
/* With the lock: whether that member has left the call's members. */
bool round_lacks(const struct process_group *group, const struct collective_round *round, int rank);
/* Whether this member meets that rank in it. */
bool round_meets(const struct process_group *group, const struct collective_round *round, int rank);
void round_drop(struct process_group *group, struct collective_round *round);
/* With the lock: takes it off the list, and gives its waiter; it is over. */
struct collective_waiter *round_end(struct process_group *group, struct collective_round *round);

/* With the lock: this member declines it. */
void round_decline(struct process_group *group, struct collective_round *round,
                   const struct collective_group *members);
/* With the lock: this member's call. ERR_OS: no memory. */
int round_call(struct process_group *group, struct collective_round *round,
               const struct collective_call *call, struct error *err);
/* Whether a value that does not go by rows travels in what is brought, rather than in blocks. */
bool round_is_small(const struct collective_round *round, int value);
/* With the lock: NULL: there is none of that index. */
struct block *round_block(const struct collective_round *round, uint64_t index);
/* With the lock: if everybody was heard of, who takes part and who owns what; true: since now. */
bool round_settle(struct process_group *group, struct collective_round *round);
/* ERR_DATA when a member brings other types, shapes or kinds. */
int round_check(const struct process_group *group, const struct collective_round *round,
                struct error *err);

/* ---- values that go by rows (collective_rows.c) ---- */

/* With the lock: which ones these are, of the call. */
void rows_call(struct process_group *group, struct collective_round *round,
               const struct collective_call *call);
void rows_free(struct collective_round *round);
void rows_pack(msgpack_packer *packer, const struct collective_round *round);
/* False: it is malformed. */
bool rows_read(const struct record *record, struct brought *brought);
/* Whether a member that has so many rows of the value brings them, or some to each. */
bool rows_are_brought(const struct collective_round *round, int value, int64_t rows);
/* What is brought to that rank, as a vector. */
struct tensor rows_piece(const struct process_group *group, const struct collective_round *round,
                         int rank, int value);
/* How many rows a member brings of the value, and wants; ERR_PROTOCOL: it does not say. */
int rows_counts(const struct process_group *group, const struct collective_round *round, int rank,
                int value, const int64_t **counts, struct error *err);
/* The round is settled: makes the result, of what members brought (NULL: it comes in blocks). */
int rows_take(struct process_group *group, struct collective_round *round, int value,
              const struct tensor *const *pieces, struct error *err);

/* Blocks of such values (collective_late.c). All have been taken: cuts what does not travel in what
 * is brought. ERR_DATA: there would be too much. */
int late_cut(struct process_group *group, struct collective_round *round, struct error *err);
/* Whether all the member's rows, or those of all, were in what is brought. */
bool rows_were_brought(const struct process_group *group, const struct collective_round *round,
                       int value, int member);
/* Whether a block's sum stays with its owner. */
static inline bool block_stays(const struct collective_round *round, const struct block *block)
{
    return round->routed[block->value].is_routed && collective_adds(round->kinds[block->value]);
}
/* Whether its owner has it, and gives it to who is to have it. */
static inline bool block_is_given(const struct collective_round *round, const struct block *block)
{
    return !collective_adds(round->kinds[block->value]);
}

/* ---- blocks that go by a schedule (collective_scheduled.c) ---- */

/* With the lock: whether the value's do. */
bool scheduled_value(const struct collective_round *round, int value);
/* How many these are, which are put into the array if there is one. */
size_t scheduled_cut(const struct process_group *group, struct collective_round *round, int value,
                     struct block *blocks);
/* With the lock: it is known who takes part. */
void scheduled_settle(const struct process_group *group, struct collective_round *round);
void scheduled_free(struct collective_round *round);
/* With the lock: whether that member may send the sum. */
bool scheduled_awaits(const struct collective_round *round, const struct block *block, int rank);
/* Does what can be done. True: the block is over since now. */
bool scheduled_go_on(struct process_group *group, struct collective_round *round,
                     struct block *block);
/* A part of that member's has come. False: it has no place here. */
bool scheduled_take_part(struct process_group *group, struct collective_round *round,
                         struct block *block, int rank, const struct tensor *part);
/* The sum has come, and is in the result. */
void scheduled_take_sum(struct process_group *group, struct collective_round *round,
                        struct block *block);

/* With one member alone nothing does. */
static inline bool block_is_scheduled(const struct collective_round *round,
                                      const struct block *block)
{
    return block->is_scheduled && (!round->settled || round->programs);
}

/* ---- what goes by servers (collective_served.c) ---- */

static inline bool served_is_server(const struct process_group *group, int end)
{
    return end >= group->interface.size;
}
int served_count(const struct process_group *group);
void served_join(struct process_group *group, int end); /* the link to a server has opened here */
/* With the lock: the round is settled; owners of sums become servers. */
void served_settle(const struct process_group *group, struct collective_round *round);
/* Which server passes on the block of that number of those that are for all others; 0: none. */
int served_relay(const struct process_group *group, const struct collective_round *round,
                 uint64_t number);
/* Sends the piece to the block's server. */
void served_send(struct process_group *group, const struct collective_round *round,
                 const struct block *block, const struct tensor *piece);
/* With the lock: whether the server may send what is in the block. */
bool served_awaits(const struct collective_round *round, const struct block *block, int end);
#define SERVED_FIELDS 3 /* of a block, which are said to a server */
void served_pack(const struct process_group *group, msgpack_packer *packer,
                 const struct collective_round *round, const struct block *block);

/* ---- what is done about them (collective_reduce.c); without the lock, by a holder ---- */

/* Says what is brought here to all others. */
void reduce_bring(struct process_group *group, struct collective_round *round);
/* It was settled: combines what was brought, and begins with what is large. */
void reduce_begin(struct process_group *group, struct collective_round *round);
/* Begins blocks as long as not too much is on its way. */
void reduce_go_on(struct process_group *group, struct collective_round *round);
/* With the lock: whether the block's parts are there. */
bool reduce_is_complete(const struct process_group *group, const struct collective_round *round,
                        const struct block *block);
/* They are, and the caller has claimed it. */
void reduce_sum(struct process_group *group, struct collective_round *round, uint64_t index);
/* Puts into the result what has come of a block. */
void reduce_put(const struct collective_round *round, const struct block *block,
                const struct tensor *arrived);
/* Of a mean of rows: a piece of the result becomes it. */
void reduce_divide(const struct collective_round *round, int value, struct tensor *piece);
/* A block of another's is there, and begins what has waited for it. */
void reduce_arrived(struct process_group *group, struct collective_round *round,
                    struct block *block);
void reduce_fail(struct process_group *group, struct collective_round *round,
                 const struct error *err);
/* Answers the call if all is there, when nobody holds the round any more. */
void reduce_conclude(struct process_group *group, struct collective_round *round);
/* Sends a piece of a block, by memory that both have where there is room for a copy of it. */
void reduce_send_copy(struct process_group *group, int rank, const struct reduce *reduce);
int64_t reduce_block_bytes(const struct collective_round *round, const struct block *block);
/* Elements of a tensor as one of its own; shares the memory. */
struct tensor tensor_piece(const struct tensor *t, int64_t first, int64_t count);

/* ---- records (collective_send.c, collective_record.c) ---- */

struct reduce {
    enum reduce_what what;
    const struct direct_offer *offers; /* of what is brought */
    int n_offers;
    const struct collective_round *round; /* NULL: of none */
    uint64_t index; /* of a block; the signature of what is brought; without a round a number */
    const struct tensor *tensors;
    int n;
    bool is_shared; /* instead of tensors */
    uint64_t shared;
    bool is_there;              /* instead: the sum is in the memory that was offered */
    const struct block *served; /* it goes to this one's server; NULL: to a member */
};

/* What is sent to a member that is gone is dropped. */
void reduce_send(struct process_group *group, int rank, const struct reduce *reduce);
int reduce_take(void *group, struct peer *peer, const struct record *record, struct error *err);
bool reduce_place(void *group, struct peer *peer, const struct record *record,
                  const struct tensor *like, struct tensor *t);

/* ---- the end (collective_end.c) ---- */

/* That member has begun the step last, and all are to end. */
void end_take(struct process_group *group, int rank, int64_t step);

/* ---- members on one host (collective_shared.c) ---- */

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

/* ---- values that are read where they are (collective_direct.c) ---- */

/* With the lock: which ones these are. */
void direct_choose(const struct process_group *group, struct collective_round *round);
/* What that member is offered, counted for it; it is to be sent. */
int direct_offer(struct process_group *group, struct collective_round *round, int rank,
                 struct direct_offer **offers);
void direct_pack(msgpack_packer *packer, const struct direct_offer *offers, int n);
/* False: it is malformed. */
bool direct_read(const struct record *record, struct brought *brought);
/* The round is settled: maps what was brought, and answers. ERR_PROTOCOL. */
int direct_take(struct process_group *group, struct collective_round *round, struct error *err);
int direct_take_answer(struct process_group *group, struct collective_round *round, int rank,
                       uint64_t n, struct error *err);
/* With the lock: whether all who are to answer have, so that blocks may be begun. */
bool direct_agreed(const struct process_group *group, struct collective_round *round);
/* Since then: whether the member reads this one's value and its sums; */
bool direct_is_read(const struct collective_round *round, int rank, int value);
/* and where this one reads the member's. NULL: they are sent. */
const struct tensor *direct_part(const struct collective_round *round, int rank, int value);
const struct tensor *direct_sum(const struct collective_round *round, int rank, int value);
/* Nothing of it is read any more. */
void direct_give_back(const struct process_group *group, struct collective_round *round);

#endif
