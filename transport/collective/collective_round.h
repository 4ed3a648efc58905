/* SPDX-License-Identifier: Apache-2.0
 *
 * The group of members, the ends of its links, and its rounds: calls of all members, as this member
 * sees them, with the chunks of their large values. Private to transport, as are the headers beside
 * it. Files call each other one way: collective -> record, device -> round
 * -> chunk -> sending of records.
 */
#ifndef TF_TRANSPORT_COLLECTIVE_ROUND_H
#define TF_TRANSPORT_COLLECTIVE_ROUND_H

#include <pthread.h>

#include "base/vec.h"
#include "collective/schedule.h"
#include "transport/collective/collective.h"
#include "transport/link/buffer_pool.h"

#define GROUP_BLOCKS 64
#define CHUNK_BYTES ((int64_t)256 << 10)
#define WINDOW_BYTES ((int64_t)1 << 20) /* least window of parts in flight */
#define TO_ALL (-2)                     /* as a chunk's peer: all other members */

/* The other end of a link of this member: another member, or a server. */
struct group_end {
    char *task;

    /* Constant once members have joined; before, used by the loop's thread only. */
    bool asked, shares;    /* a reply is awaited; it reads this member's segment */
    struct tensor segment; /* a byte of its segment, mapped; empty: all data comes over the link */

    /* With the group's lock: */
    struct peer *peer;  /* NULL: no link, or it is this member */
    bool left, leaving; /* leaving: it has announced it */
    bool has_said;      /* it has told which step it has begun last */
};

struct process_group {
    struct collective interface; /* first */
    struct conns *conns;
    int n_ends;
    struct group_end *ends; /* the members by rank, then the servers */
    struct conns_watcher watcher;
    struct buffer_pool *memory;    /* of results */
    struct device_sums *sums;      /* NULL: no sums on devices; set before the first step */
    struct error dial;             /* of a dial that was given up; the loop's thread only */
    bool closes;                   /* its links are being closed; the loop's thread only */
    void (*leaves)(void *context); /* as in struct collective_tasks */
    void *context;

    struct tensor segment; /* a byte of this member's segment for others to map; empty: none */

    pthread_mutex_t lock; /* guards the members below, and rounds; not held during callbacks */
    struct tensor blocks[GROUP_BLOCKS]; /* for chunks of values in no segment, once allocated */
    struct error failed;                /* a member is lost; all calls fail */
    struct collective_round *rounds;
    size_t n_uncalled;
    int64_t begun;     /* the last step that this member has begun */
    int64_t last_step; /* the latest of the last steps that were told */
    int first;         /* the result of collective_links_first */

    int n_calls; /* calls that have not returned, though some may be answered */
    pthread_cond_t returned;
};

static inline bool is_server(const struct process_group *group, int end)
{
    return end >= group->interface.size;
}
static inline int count_servers(const struct process_group *group)
{
    return group->n_ends - group->interface.size;
}

/* Closes the link to that end; with `why` NULL, in an orderly way. Any thread. */
void end_close(struct process_group *group, int end, const struct error *why);

/* ---- chunks (collective_chunk.c) ---- */

/* A chunk of a large value. It is over when this member has done its program. */
struct chunk {
    uint64_t index; /* the same in all members */
    int value;
    int64_t first, count; /* elements */
    int64_t at;           /* in the result */
    const struct chunk_program *program;
    int peer;             /* of the program: an end, or TO_ALL */
    struct tensor *parts; /* received parts or whole chunk, by end; NULL: none */
    size_t n_done;        /* actions */
    bool busy;            /* a thread does an action */
    bool has_sum;         /* the result has the sum, or the partial sum */
    bool begun;
};

/* What another end sends of a chunk: its part, or the whole chunk. */
struct chunk_piece {
    uint64_t index; /* of the chunk */
    int end;
    bool is_part, is_shared; /* is_shared: the data are bytes in the sender's segment */
    int n;                   /* of the data: 1; 0: the owner of a sum reports that it has it */
    struct tensor data;
};

/* ---- rounds (collective_round.c) ---- */

/* The routing of a value by rows. */
struct routed_value {
    bool is_routed;            /* else all members have as many rows, and all get the same */
    int at;                    /* index among the routed values */
    int64_t unit;              /* elements of a row */
    int64_t brought, wanted;   /* here */
    struct row_routes routing; /* of the group; once settled, of those that take part */
    int64_t *counts;           /* of the routing, in memory of the round */
};

/* A member's contribution to a round. */
struct round_contribution {
    bool here;
    bool nothing;       /* it declines */
    uint64_t signature; /* of types, shapes and kinds */
    struct tensor *values;
    int n, n_taken; /* values taken by the combination so far */
    uint64_t *rows; /* two for each routed value: rows brought, and wanted */
    int n_rows;
    uint64_t number; /* of a sum on devices, from 1 */
};

/* In this order. A member calls and tells the others what it contributes; if a member is lost
 * meanwhile, the round ends once they have been told. A member that has heard from all sends
 * chunks, which one that has not yet keeps. */
enum round_state {
    ROUND_NEW,     /* others have called */
    ROUND_CALLING, /* this member has called, and tells the others */
    ROUND_CALLED,  /* the others have been told; it waits for their contributions */
    ROUND_SETTLED, /* all members are known: small values are combined, large ones are cut */
    ROUND_RUNNING, /* chunks are sent */
    ROUND_OVER,    /* done, failed, cancelled */
};

/* A call of all members. The first member that is heard of creates it. It is in the list until it
 * is over, and its last holder frees it: the list, or a thread that works on it. */
struct collective_round {
    struct collective_round *next;
    int holders;
    char *name;
    enum round_state state;

    /* The call of this member; before, only the key is known, whose name is `name`. `kinds` is a
     * copy, the values are `own`; other memory of the caller is not read again. by_servers: the
     * group also has some. */
    struct collective_call call;
    struct collective_waiter *waiter; /* NULL: nobody waits */
    enum collective_kind *kinds;
    bool declined; /* this member declined instead of a call */
    int64_t root;  /* a rank */
    struct tensor *own, *results;
    uint64_t signature;
    VEC(struct chunk *) chunks;     /* by index, once the round has settled */
    VEC(struct chunk_piece) early;  /* from members for which it has settled before */
    size_t n_missing;               /* chunks that are not over */
    size_t n_begun;                 /* number of chunks that were begun, in order */
    int64_t flying;                 /* bytes of begun chunks that have yet to arrive here, */
    int64_t window;                 /* and their limit */
    struct chunk_program *programs; /* once settled, by piece of the schedule; NULL: */
    int n_programs;                 /* nobody else takes part, or the call has no schedule */
    struct routed_value *routed;    /* by value */
    int n_routed;
    int64_t *counts;
    struct device_sum *on_device; /* NULL: the values are in host memory */

    struct round_contribution *contributions; /* by rank */
    int *members;                             /* once settled: the ranks that take part, */
    int n_members;                            /* their number, */
    int place;                                /* and this member's place among them */
    struct collective_waiter *answered;       /* gets the results when nobody holds the round */
};

/* With the lock: returns the round of that key; NULL: there is none. round_get creates it if need
 * be. Neither holds it for the caller. */
struct collective_round *round_find(struct process_group *group, const struct collective_key *key);
struct collective_round *round_get(struct process_group *group, const struct collective_key *key);
void round_drop(struct process_group *group, struct collective_round *round);
/* With the lock: this member calls, or, without a waiter, declines; returns the round, held until
 * round_tell. ERR_OS: no memory. */
struct collective_round *round_call(struct process_group *group, const struct collective_call *call,
                                    struct collective_waiter *waiter, struct error *err);
/* Tells the others of the call, unless *err says why not, and drops the round. */
void round_tell(struct process_group *group, struct collective_round *round, struct error *err);
/* Returns the first round for which `is_it` is true, held; NULL: there is none. */
struct collective_round *round_hold(struct process_group *group,
                                    bool (*is_it)(const struct process_group *group,
                                                  const struct collective_round *round));
/* Continues all rounds that settle because a member has left. */
void rounds_settle(struct process_group *group);

/* With the lock: ends the round, takes it off the list, and returns its waiter. */
struct collective_waiter *round_end(struct process_group *group, struct collective_round *round);
void round_fail(struct process_group *group, struct collective_round *round,
                const struct error *err);
/* As round_fail; the error says what the round waited for. */
void round_lose(struct process_group *group, struct collective_round *round,
                const struct error *why);
/* Does what can be done after an event: settles the round, begins chunks, and, once all chunks are
 * done, lets the last holder answer the call. */
void round_go_on(struct process_group *group, struct collective_round *round);

/* Returns whether that many rows of a value are in the contribution, not sent in chunks. */
bool round_is_small(const struct collective_round *round, int value, int64_t rows);
/* With the lock: finds how the values of the call are routed. */
void rows_call(struct process_group *group, struct collective_round *round);
/* This member's contribution: packs the fields of its record, and returns how many they are. */
int contribution_fields(const struct collective_round *round);
void contribution_pack(const struct collective_round *round, uint64_t number,
                       msgpack_packer *packer);
/* With the lock: takes another member's contribution. ERR_PROTOCOL. */
int contribution_take(struct process_group *group, struct collective_round *round, int rank,
                      uint64_t signature, const struct record *record, struct error *err);
/* Returns whether the rows of that place among the members were in its contribution; for a sum, the
 * rows of all. */
bool were_contributed(const struct process_group *group, const struct collective_round *round,
                      int value, int place);
/* Once settled: makes the results of small values. */
int contributions_combine(struct process_group *group, struct collective_round *round,
                          struct error *err);
/* Divides a piece of the result of a mean of rows. */
void rows_divide(const struct collective_round *round, int value, struct tensor *piece);

/* With the lock, once settled: cuts large values into chunks, lets them run, and takes what came
 * before. ERR_DATA: there are too many rows; ERR_PROTOCOL: a piece of *end is refused. */
int chunks_run(struct process_group *group, struct collective_round *round, int *end,
               struct error *err);
void chunks_free(const struct process_group *group, struct collective_round *round);
/* With the lock: returns the chunk of that index; NULL: there is none. */
struct chunk *chunk_find(const struct collective_round *round, uint64_t index);
/* Returns whether a chunk's sum stays with its owner, which only reports that it is done. */
bool chunk_stays(const struct collective_round *round, const struct chunk *chunk);
/* Begins chunks while less than the window is in flight. */
void chunks_begin(struct process_group *group, struct collective_round *round);
/* With the lock: keeps a piece until the chunks are known, or for the action that wants it; then
 * *chunk is the piece's. ERR_PROTOCOL: none does. Then, without the lock, chunk_advance does the
 * actions that can be done. */
int chunk_take(const struct process_group *group, struct collective_round *round,
               const struct chunk_piece *piece, struct chunk **chunk, struct error *err);
void chunk_advance(struct process_group *group, struct collective_round *round,
                   struct chunk *chunk);
/* With the lock: returns whether a whole chunk from that end may be read right into its place. */
bool chunk_has_place(const struct process_group *group, const struct collective_round *round,
                     const struct chunk *chunk, int end);
/* Returns elements of a tensor as a tensor that shares the memory. */
struct tensor tensor_piece(const struct tensor *t, int64_t first, int64_t count);

/* ---- sums that the devices of all members add: rounds whose values are in their memory
 * (collective_device.c) ---- */

/* With the lock: the values of the round's call are on the group's device. */
void device_sum_new(struct process_group *group, struct collective_round *round);
void device_sum_free(struct device_sum *sum);
/* Continues the call when the values are computed. */
void device_sum_await(struct device_sum *sum);
/* Continues in host memory: the round has settled, and some member has left. */
void device_sum_to_host(struct device_sum *sum);

/* With the lock: a round runs, or is over, so that its number, if any, is not waited for. */
void device_sums_look_at(struct device_sums *sums, const struct collective_round *round);
/* With the lock: nothing is enqueued from now on, and the communicator is aborted soon. */
void device_sums_give_up(struct device_sums *sums, const struct error *why);
void device_sums_free(struct device_sums *sums);

#endif
