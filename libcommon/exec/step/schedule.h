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
 * tree: a binomial tree, or a given one, to rank 0, and back.
 *
 * halving: recursive halving and doubling (Thakur et al., IJHPCA 2005); of members beyond the
 * largest power of two each gives a partner what it has first.
 *
 * two-level: within each host to its first member, a ring of these, and back (MXNet's two-level
 * aggregation).
 *
 * Sums of direct and chain are by rank; the others associate otherwise, and always alike.
 */
#ifndef TF_EXEC_SCHEDULE_H
#define TF_EXEC_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "exec/step/topology.h"

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

/* What a schedule says of a library of the devices' that adds: it may be none, be used where all
 * members have it, "nccl-auto", or have to be there, "nccl". */
enum by_device { BY_DEVICE_NEVER, BY_DEVICE_IF_THERE, BY_DEVICE_ALWAYS };
#define BY_DEVICE_NAMES "nccl and nccl-auto"
enum by_device by_device_of(const char *schedule);
const char *by_device_name(enum by_device by); /* but of NEVER */

/* What a schedule says of servers that add, and pass on rows, for the members. */
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
    int n_members;      /* 1 to SCHEDULE_MEMBERS_MAX */
    int n_pieces;       /* 0: as few as the kind has; more of them overlap */
    const int *hosts;   /* of two-level: by member */
    const int *parents; /* of tree: by member, a smaller rank; -1 of member 0; NULL: binomial */
    const struct topology *topology; /* NULL: each member has a link to each */
};

/* As few pieces as the kind has. */
int schedule_pieces(const struct schedule_request *request);

/* Fills what is zero-initialised. Each flow is in the first round in which its value is there and
 * its links are free. ERR_DATA: the request has no such schedule. */
int schedule_make(const struct schedule_request *request, struct sum_schedule *schedule,
                  struct error *err);
void schedule_release(struct sum_schedule *schedule);

/* Puts flows into rounds, in their order; see schedule_make. */
void schedule_set_rounds(struct sum_schedule *schedule, const struct topology *topology);

struct schedule_report {
    bool by_rank;         /* all sums are ((0 + 1) + 2) + ... */
    int most_on_link;     /* pieces over the link that has most, and */
    int64_t on_all_links; /* over all of them together */
};

/* ERR_DATA, which names the round, unless no link carries two flows in one, in a direction; each
 * flow brings what there is, and no contribution counts twice; and each member ends with each sum.
 * *on_links, by index 2 link + direction, is the caller's array, or NULL: pieces over each. */
int schedule_check(const struct sum_schedule *schedule, const struct topology *topology,
                   int *on_links, struct schedule_report *report, struct error *err);

/* ---- what one member does about one piece, in this order ---- */

enum schedule_do { SCHEDULE_DO_SEND, SCHEDULE_DO_ADD, SCHEDULE_DO_COPY };

struct schedule_action {
    enum schedule_do what;
    int member; /* to whom, or from whom */
    bool whole; /* it is the sum; of an add: since then */
};

struct schedule_program {
    VEC(struct schedule_action) actions;
};

/* Appends to the program. Of a schedule that keeps nothing. */
void schedule_program(const struct sum_schedule *schedule, int member, int piece,
                      struct schedule_program *program);

#endif
