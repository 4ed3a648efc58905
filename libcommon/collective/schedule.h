/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules of a collective sum: the order in which the pieces of a value are sent between members
 * and added. A schedule is a list of flows; each sends one piece between two members in one round.
 * All flows of a round send what members have when it starts. Nothing here sends data.
 *
 * direct: each piece has an owner, which gets the piece of every member and adds them by rank.
 *
 * chain: each member adds its value along the line of ranks, and the sum is sent back (the line of
 * Mariana: Zou et al., VLDB 2014).
 *
 * ring: reduce-scatter and all-gather around a ring (Patarasuk and Yuan, JPDC 2009).
 *
 * tree: a binomial tree to rank 0, and back.
 *
 * halving: recursive halving and doubling (Thakur et al., IJHPCA 2005); each member beyond the
 * largest power of two first sends its value to a partner.
 *
 * two-level: on each host to its first member, around a ring of these, and back (MXNet's two-level
 * aggregation).
 *
 * Direct and chain add by rank; the other kinds add in another order, which is always the same.
 */
#ifndef TF_COLLECTIVE_SCHEDULE_H
#define TF_COLLECTIVE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "collective/group.h"
#include "collective/sum.h"
#include "tensor/tensor.h"

#define SCHEDULE_MEMBERS_MAX 64
#define SCHEDULE_NAMES "direct, chain, ring, tree, halving and two-level"

enum schedule_kind {
    SCHEDULE_DIRECT,
    SCHEDULE_CHAIN,
    SCHEDULE_RING,
    SCHEDULE_TREE,
    SCHEDULE_HALVING,
    SCHEDULE_TWO_LEVEL,
};

/* Returns false if no kind has that name. */
bool schedule_kind_of(const char *name, enum schedule_kind *kind);
const char *schedule_name(enum schedule_kind kind);

/* How a call uses a communication library of the devices: never; "nccl-auto", if all members have
 * it; or "nccl", always. */
enum by_device { BY_DEVICE_NEVER, BY_DEVICE_IF_THERE, BY_DEVICE_ALWAYS };
#define BY_DEVICE_NAMES "nccl and nccl-auto"
enum by_device by_device_of(const char *schedule);
const char *by_device_name(enum by_device by); /* not for BY_DEVICE_NEVER */

/* The schedule in which servers add, and forward rows, for the members. */
#define SCHEDULE_BY_SERVERS "servers"

enum schedule_operation {
    SCHEDULE_ADD,  /* to the value of the destination */
    SCHEDULE_KEEP, /* the source's own value, until all are there and are added by rank */
    SCHEDULE_COPY, /* the sum */
};

struct schedule_flow {
    int round, from, to, piece;
    enum schedule_operation operation;
};

struct sum_schedule {
    int n_members, n_pieces, n_rounds;
    /* By round; the additions to a piece are in the order in which they are done. */
    VEC(struct schedule_flow) flows;
};

struct schedule_request {
    enum schedule_kind kind;
    int n_members;    /* 1 to SCHEDULE_MEMBERS_MAX */
    int n_pieces;     /* 0: the kind's minimum; more pieces overlap */
    const int *hosts; /* for two-level: host number by member */
};

/* Fills the zero-initialised `schedule`. Each flow is in the first round in which its value is
 * ready and nothing else is sent from the same member to the same destination. ERR_DATA: such a
 * schedule does not exist. */
int schedule_make(const struct schedule_request *request, struct sum_schedule *schedule,
                  struct error *err);
void schedule_release(struct sum_schedule *schedule);

/* ---- the schedule of a call ---- */

/* How large sums and means are sent between members. Zeroed: directly. */
struct collective_schedule {
    enum schedule_kind kind;
    const int64_t *hosts; /* for two-level: by rank, of all members; valid as long as the key */
};

/* Values up to this size are sent to all members, which add them by rank. */
#define COLLECTIVE_SMALL_BYTES ((int64_t)64 << 10)

/* Returns whether a value follows the call's schedule: only sums and means for all members, of
 * values that are not small and not 16-bit floats, which must be rounded only once. */
bool collective_goes_by_schedule(const struct collective_schedule *schedule,
                                 enum collective_kind kind, bool has_root,
                                 const struct tensor *value);

/* Returns into how many even parts (collective_part) such a value is cut in the group of member
 * `rank` among `size`. Part k is piece k mod n_pieces of the schedule of those that take part. */
int collective_schedule_parts(const struct collective_schedule *schedule,
                              const struct collective_group *group, int size, int rank);

/* Makes that schedule for the members of these ranks, at most SCHEDULE_MEMBERS_MAX. */
void collective_schedule_make(const struct collective_schedule *schedule, const int *ranks, int n,
                              struct sum_schedule *made);

/* ---- programs ---- */

/* The list of actions of one member for a chunk of a value. An action is done when all actions
 * before it are done and its input is there. In a direct sum of three members the owner of a chunk
 * has the program {SUM}, and the two others have {SEND to the owner, COPY from the owner}. */
enum act {
    ACT_SEND, /* the member's value */
    ACT_ADD,  /* another member's value, to the member's own */
    ACT_SUM,  /* adds the values of all members by rank, and sends the sum to all */
    ACT_COPY, /* the sum, or another value, from another member */
};

#define PROGRAM_PEER (-1) /* as a member: the chunk's own peer; one program serves many chunks */

struct chunk_action {
    enum act what;
    int member; /* destination or source */
    bool whole; /* the value is complete; for an addition: after it */
};

struct chunk_program {
    struct chunk_action *actions;
    size_t n;
    bool awaits; /* some action waits for data of others */
};

/* The programs of a direct sum: of the owner, and of another member, whose peer is the owner or a
 * server. */
extern const struct chunk_program program_owner, program_member;
/* The programs of a value that is not added: of the source, which sends it to its peer, and of the
 * destination, which gets it from its peer. */
extern const struct chunk_program program_source, program_destination;

/* Makes the program of a member for a piece of a schedule; the caller releases it. */
void program_make(const struct sum_schedule *schedule, int member, int piece,
                  struct chunk_program *program);
void program_release(struct chunk_program *program);

#endif
