/* SPDX-License-Identifier: Apache-2.0
 *
 * The group of members, the ends of its links, and rounds: calls of all members, as this one sees
 * them (collective/round.h), with the chunks of their large values. Private to transport, as are
 * the headers beside it. Files call each other one way: collective -> record, device -> round ->
 * chunk -> record's sending.
 */
#ifndef TF_TRANSPORT_COLLECTIVE_ROUND_H
#define TF_TRANSPORT_COLLECTIVE_ROUND_H

#include <pthread.h>

#include "base/vec.h"
#include "collective/round.h"
#include "collective/schedule.h"
#include "transport/collective/collective.h"
#include "transport/link/buffer_pool.h"

#define GROUP_BLOCKS 64
#define CHUNK_BYTES ((int64_t)256 << 10)
#define CHUNKS_EACH 4                   /* that an owner has of a value, at least */
#define WINDOW_BYTES ((int64_t)1 << 20) /* of parts on their way, at least */
#define TO_ALL (-2)                     /* as a chunk's peer: all other members */

/* The end of a link of this member's: another member, or a server. */
struct group_end {
    char *task;

    /* Since members have met; before, the loop's thread's own. */
    bool asked, shares;    /* it is to answer; it reads what this member has in its segment */
    struct tensor segment; /* a byte of its own, mapped; empty: all comes over the link */

    /* With the group's lock: */
    struct peer *peer;  /* NULL: no link, or it is this member */
    bool left, leaving; /* leaving: it has said that it is about to */
    bool has_said;      /* which step it has begun last; this one since it has told all */
};

struct process_group {
    struct collective interface; /* first */
    struct conns *conns;
    int n_ends;
    struct group_end *ends; /* the members, by rank, and behind them the servers */
    struct conns_watcher watcher;
    struct conns_reducer reducer;
    struct buffer_pool *memory; /* of results */
    struct device_sums *sums;   /* NULL: no devices add; set before the first step */
    struct error dial;          /* of one that was given up; the loop's thread's own */
    struct collective_leave leaving_heard;

    struct tensor segment; /* a byte of this member's, for others to map; empty: none does */

    pthread_mutex_t lock; /* guards what follows, and rounds; held briefly, never while calling */
    struct tensor blocks[GROUP_BLOCKS]; /* for chunks of what is in no segment; empty: not yet */
    struct error failed;                /* a member is lost; nothing can meet any more */
    struct collective_round *rounds;
    size_t n_uncalled;
    int64_t begun;     /* the last step here */
    int64_t last_step; /* the latest that anybody has begun, of those that have said it */
    int first;         /* the least rank in the round that was settled last */

    int n_calls; /* that have not returned: of those whose waiters were told, too */
    pthread_cond_t returned;
};

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

/* Takes the word that the member has begun the step last, and all are to end. */
void end_take(struct process_group *group, int rank, int64_t step);

/* ---- chunks (collective_chunk.c) ---- */

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

/* ---- rounds (collective_round.c) ---- */

/* The routing of a value that goes by rows; zeroed: it does not. */
struct routed_value {
    bool is_routed;
    int at;                    /* which of those that are */
    int64_t unit;              /* elements of a row */
    int64_t brought, wanted;   /* here */
    struct row_routes routing; /* of the group; since the round is settled of who takes part */
    int64_t *counts;           /* the routing's */
};

/* A member's contribution to a round. */
struct round_contribution {
    bool here;
    bool nothing;       /* it declines */
    uint64_t signature; /* of types, shapes and kinds */
    struct tensor *values;
    int n, n_taken; /* the values that follow are of what comes next in the call */
    uint64_t *rows; /* two for each value that goes by rows: brought, and wanted */
    int n_rows;
    bool is_ready;   /* it has heard all, where rows come in chunks */
    uint64_t number; /* of a sum that devices add, from 1 on */
};

/* A call of all members. It is made by the first that is heard of, in the list until it is over,
 * and is freed by the last who holds it: the list, or a thread that works on it. */
struct collective_round {
    struct collective_round *next;
    int holders;
    char *name;
    struct collective_key key;
    enum round_state state;

    /* The call here, zeroed before; its kinds are a copy, its values `own`, and what is the
     * caller's is not looked at again. by_servers: and the group has some. */
    struct collective_call call;
    struct collective_waiter *waiter; /* NULL: nobody waits */
    enum collective_kind *kinds;
    bool declined; /* instead: nobody waits for anything here */
    int64_t root;  /* a rank */
    struct tensor *own, *results;
    uint64_t signature;
    VEC(struct chunk *) chunks; /* by index: those of the call, and since it is settled those of */
    size_t n_missing;           /* what goes by rows that this member sends or gets */
    bool has_late;              /* some member has those */
    size_t n_begun;             /* chunks: all before the next one that is to be begun */
    int64_t flying;             /* bytes of begun chunks that come here, and are not here, */
    int64_t window;             /* of which there are to be no more than so many */
    struct chunk_program *programs; /* since it is settled: by piece of the schedule; NULL: */
    int n_programs;                 /* nobody else takes part, or nothing goes by it */
    struct routed_value *routed;    /* by value */
    int n_routed;
    struct device_sum *on_device; /* NULL: they are in host memory */

    struct round_contribution *contributions; /* by rank */
    int *members;                             /* ranks of those that take part, and */
    int n_members;                            /* how many: all are known since it is settled */
    int place;                                /* of this one among them */
    struct collective_waiter *answered; /* who gets the results when nobody holds it any more */
};

/* With the lock: the one of that key; NULL: there is none. round_get makes it if need be. Neither
 * is held for the caller. */
struct collective_round *round_find(struct process_group *group, const struct collective_key *key);
struct collective_round *round_get(struct process_group *group, const struct collective_key *key);
void round_drop(struct process_group *group, struct collective_round *round);
/* With the lock: this member's call; where nobody waits it declines. ERR_OS: no memory. */
int round_call(struct process_group *group, struct collective_round *round,
               const struct collective_call *call, struct error *err);
/* Tells the others of it, unless *err says why not. */
void round_tell(struct process_group *group, struct collective_round *round, struct error *err);
/* The first of those, held; NULL: there is none. */
struct collective_round *round_hold(struct process_group *group,
                                    bool (*is_it)(const struct process_group *group,
                                                  const struct collective_round *round));
/* Goes on with all rounds that settle, as a member has left. */
void rounds_settle(struct process_group *group);

/* With the lock: takes it off the list, and gives its waiter; it is over. */
struct collective_waiter *round_end(struct process_group *group, struct collective_round *round);
void round_fail(struct process_group *group, struct collective_round *round,
                const struct error *err);
/* The same, of what it waited for. */
void round_lose(struct process_group *group, struct collective_round *round,
                const struct error *why);
/* Does what may be done since something has come: settles it, begins chunks, and answers the call
 * if all is there, when nobody holds the round any more. */
void round_go_on(struct process_group *group, struct collective_round *round);

/* Returns whether a value that does not go by rows is contributed, not sent in chunks. */
bool round_is_small(const struct collective_round *round, int value);
/* With the lock: which values of the call go by rows. */
void rows_call(struct process_group *group, struct collective_round *round);
void rows_free(struct collective_round *round);
/* What a member contributes: the fields of such a record, and how many they are. */
int contribution_fields(const struct collective_round *round);
void contribution_pack(const struct collective_round *round, uint64_t number,
                       msgpack_packer *packer);
/* With the lock: what another contributes. ERR_PROTOCOL. */
int contribution_take(struct process_group *group, struct collective_round *round, int rank,
                      uint64_t signature, const struct record *record, struct error *err);
/* The round is settled: makes results of what is small, and cuts rows that are not in chunks. */
int contributions_combine(struct process_group *group, struct collective_round *round,
                          struct error *err);
/* Makes a piece of a sum of rows their mean. */
void rows_divide(const struct collective_round *round, int value, struct tensor *piece);

/* Cuts what flows bring, each of one value over one way, in chunks of at most so many elements.
 * They take turns, and indices of one are n_flows apart. Leaves no flows. */
void chunks_append(chunk_vec *chunks, chunk_vec *flows, uint64_t n_flows, int64_t most);
/* With the lock: gives the round copies of these, and leaves none. */
void chunks_add(struct collective_round *round, chunk_vec *chunks);
/* With the lock: those of the call. */
void chunks_cut(const struct process_group *group, struct collective_round *round);
/* With the lock: it is known who takes part. */
void chunks_settle(const struct process_group *group, struct collective_round *round);
void chunks_free(const struct process_group *group, struct collective_round *round);
/* With the lock: the one of that index; NULL: there is none. */
struct chunk *chunk_find(const struct collective_round *round, uint64_t index);
/* Returns whether a chunk's sum stays with its owner, who only says that it is there. */
bool chunk_stays(const struct collective_round *round, const struct chunk *chunk);
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

#endif
