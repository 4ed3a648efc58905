/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules of a collective sum: in which order the pieces of a value go from member to member, and
 * are added on the way. A schedule is a list of flows, each of one piece over one way in one round;
 * all flows of a round begin with what members have at its start. Pure: nothing here sends.
 *
 * direct: each piece has an owner, which is sent everybody's and adds them by rank.
 *
 * chain: along the line of ranks each adds its own, and the sum goes back (the line of Mariana: Zou
 * et al., VLDB 2014).
 *
 * ring: reduce-scatter and all-gather around (Patarasuk and Yuan, JPDC 2009).
 *
 * tree: a binomial tree to rank 0, and back.
 *
 * halving: recursive halving and doubling (Thakur et al., IJHPCA 2005); of members beyond the
 * largest power of two each gives a partner what it has first.
 *
 * two-level: within each host to its first member, a ring of these, and back (MXNet's two-level
 * aggregation).
 *
 * Sums of direct and chain are by rank; the others associate otherwise, and always alike.
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

/* False: none has that name. */
bool schedule_kind_of(const char *name, enum schedule_kind *kind);
const char *schedule_name(enum schedule_kind kind);

/* How a schedule uses a library of the devices' that adds: never, where all members have it,
 * "nccl-auto", or always, "nccl". */
enum by_device { BY_DEVICE_NEVER, BY_DEVICE_IF_THERE, BY_DEVICE_ALWAYS };
#define BY_DEVICE_NAMES "nccl and nccl-auto"
enum by_device by_device_of(const char *schedule);
const char *by_device_name(enum by_device by); /* but of NEVER */

/* The schedule of servers that add, and pass on rows, for the members. */
#define SCHEDULE_BY_SERVERS "servers"

enum schedule_operation {
    SCHEDULE_ADD,  /* to what the destination has */
    SCHEDULE_KEEP, /* the source's own value, until all are there: then they are added by rank */
    SCHEDULE_COPY, /* of the sum */
};

struct schedule_flow {
    int round, from, to, piece;
    enum schedule_operation operation;
};

struct sum_schedule {
    int n_members, n_pieces, n_rounds;
    /* By round; adds to one piece in the order in which they are done. */
    VEC(struct schedule_flow) flows;
};

struct schedule_request {
    enum schedule_kind kind;
    int n_members;    /* 1 to SCHEDULE_MEMBERS_MAX */
    int n_pieces;     /* 0: as few as the kind has; more of them overlap */
    const int *hosts; /* of two-level: by member */
};

/* Fills what is zero-initialised. Each flow is in the first round in which its value is there and
 * nothing else is on its way from the one member to the other. ERR_DATA: there is no such schedule.
 */
int schedule_make(const struct schedule_request *request, struct sum_schedule *schedule,
                  struct error *err);
void schedule_release(struct sum_schedule *schedule);

/* ---- what of a call goes by a schedule, and by which one ---- */

/* How large sums and means go from member to member (schedule.h). Zeroed: directly. */
struct collective_schedule {
    enum schedule_kind kind;
    const int64_t *hosts; /* of two-level: by rank, of all members; as long as the call's key */
};

/* Smaller values go to all members, and are added by rank. */
#define COLLECTIVE_SMALL_BYTES ((int64_t)64 << 10)

/* Returns whether a value goes by the call's schedule: sums and means of all, of what is not small,
 * and not of 16-bit floats, which are rounded once. */
bool collective_goes_by_schedule(const struct collective_schedule *schedule,
                                 enum collective_kind kind, bool has_root,
                                 const struct tensor *value);

/* Into how many even parts (collective_part) such a value is cut, of the group of member `rank`
 * among `size`: part k goes as piece k mod n_pieces of the schedule of those that take part. */
int collective_schedule_parts(const struct collective_schedule *schedule,
                              const struct collective_group *group, int size, int rank);

/* Makes that schedule for members of these ranks. There are at most SCHEDULE_MEMBERS_MAX. */
void collective_schedule_make(const struct collective_schedule *schedule, const int *ranks, int n,
                              struct sum_schedule *made);

/* ---- programs ---- */

/* The actions of one member for a chunk of a value, as a list. Each is done when those before it
 * are, and what it wants is there. With direct sums of three members the owner of a chunk has the
 * program {SUM}, and the two others have {SEND to the owner, COPY from the owner}. */
enum act {
    ACT_SEND, /* what the member has */
    ACT_ADD,  /* what another has sent, to what the member has */
    ACT_SUM,  /* adds what all others have sent and its own, by rank, and sends all the sum */
    ACT_COPY, /* the sum, or whatever another has for it */
};

#define PROGRAM_PEER (-1) /* as a member: the chunk's own; one program serves many chunks */

struct chunk_action {
    enum act what;
    int member; /* to whom, or from whom */
    bool whole; /* nothing is to be added to it any more; of an add: since then */
};

struct chunk_program {
    struct chunk_action *actions;
    size_t n;
    bool awaits; /* something of others' */
};

/* The programs of a direct sum: its owner's, and another's, whose peer is the owner, or a server.
 * */
extern const struct chunk_program program_owner, program_member;
/* The programs of a value that is not added: the source's, whose peer gets it, and the one's that
 * gets it from its peer. */
extern const struct chunk_program program_source, program_destination;

/* A member's part of a piece of a schedule, to be released. */
void program_make(const struct sum_schedule *schedule, int member, int piece,
                  struct chunk_program *program);
void program_release(struct chunk_program *program);

#endif
