/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds: calls of all members, as this one sees them (collective/round.h).
 */
#ifndef TF_TRANSPORT_COLLECTIVE_ROUND_H
#define TF_TRANSPORT_COLLECTIVE_ROUND_H

#include "collective/round.h"
#include "transport/collective/collective_chunk.h"
#include "transport/collective/collective_group.h"

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
    VEC(struct chunk *) chunks; /* by index: those of the call, and since it is settled those of */
    size_t n_missing;           /* what goes by rows that this member sends or gets */
    bool has_late;              /* some member has those */
    size_t n_begun;             /* chunks: all before the next one that is to be begun */
    int64_t flying;             /* bytes of begun chunks that come here, and are not here, */
    int64_t window;             /* of which there are to be no more than so many */
    struct collective_schedule schedule;
    struct chunk_program *programs; /* since it is settled: by piece of the schedule; NULL: */
    int n_programs;                 /* nobody else takes part, or nothing goes by it */
    struct routed_value *routed;    /* by value */
    int n_routed;
    struct device_point at;       /* of the values, and of results */
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
/* The same, of what it waited for. */
void round_lose(struct process_group *group, struct collective_round *round,
                const struct error *why);
/* Does what may be done since something has come: settles it, begins chunks, and answers the call
 * if all is there, when nobody holds the round any more. */
void round_go_on(struct process_group *group, struct collective_round *round);

/* ---- contributions, and rows (collective_contribution.c) ---- */

/* With the lock: which values of the call go by rows. */
void rows_call(struct process_group *group, struct collective_round *round,
               const struct collective_call *call);
void rows_free(struct collective_round *round);
/* Returns whether a value that does not go by rows is contributed, not sent in chunks. */
bool round_is_small(const struct collective_round *round, int value);
/* Tells the other members; the fields of such a record, and how many they are. */
void contribution_send(struct process_group *group, struct collective_round *round);
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

#endif
