/* SPDX-License-Identifier: Apache-2.0
 *
 * The group of members, and the ends of its links. Private to transport, as are the headers beside
 * it. Files call each other one way: record and group -> round -> chunk -> send;
 * contributions are the round's.
 */
#ifndef TF_TRANSPORT_COLLECTIVE_GROUP_H
#define TF_TRANSPORT_COLLECTIVE_GROUP_H

#include <pthread.h>

#include "transport/collective/collective.h"
#include "transport/link/buffer_pool.h"

struct collective_round;

#define GROUP_BLOCKS 64

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

/* Takes the word that the member has begun the step last, and all are to end (collective_join.c).
 * */
void end_take(struct process_group *group, int rank, int64_t step);

#endif
