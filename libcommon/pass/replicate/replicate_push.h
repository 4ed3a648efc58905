/* SPDX-License-Identifier: Apache-2.0
 *
 * Pushes of workers to shards, and the state that workers keep. Private to libcommon/pass.
 */
#ifndef TF_PASS_REPLICATE_PUSH_H
#define TF_PASS_REPLICATE_PUSH_H

#include "pass/replicate/replicate_plan.h"

/* The pushes with gradients of one interval. */
struct due {
    int steps;
    struct edge due, taken; /* in the result: whether this push is one of them; for the update */
};

/* A private variable of a worker that checkpoints contain, in the result; the gradient that it is
 * for; and its value after a push, whether that counts or not, or EDGE_NONE. */
struct own_state {
    const struct exchange *of;
    struct edge variable, next;
};

/* A worker's own copy of a variable. */
struct local_copy {
    const struct node *variable; /* of the source */
    struct edge copy, used;      /* in the result: the copy, and the value that the step uses */
};

/* State that a worker with shards keeps for itself, in the result. */
struct worker_own {
    struct edge fetches, fires; /* downpour, accumulation: whether this step fetches, pushes; or
                                 * EDGE_NONE */
    VEC(struct due) dues;       /* one for each interval */
    struct edge pushed_before;  /* number of pushes so far */
    struct edge pushed;         /* the same with this one */
    node_list held;             /* nodes that come after the reply to a push */
    VEC(struct own_state) states;
    VEC(struct local_copy) locals;
};

/* replicate_clock.c: pushes, takes, the clock; the entries. */
int replicate_add_join(struct replicator *r); /* and the entry leave */
int replicate_add_pushes(struct replicator *r);
int replicate_add_update(struct replicator *r);
int replicate_end_update(struct replicator *r);
/* Adds an op of the clock; `spec` has the inputs. */
int replicate_clock(struct replicator *r, const char *name, struct node_spec spec);

/* replicate_push.c: return the worker's value, summed over steps where several share a push; and a
 * factor of it, with the rows of those steps. */
struct edge replicate_pushed(struct replicator *r, struct exchange *x);
struct edge replicate_factor(struct replicator *r, const struct exchange *x, int i);
/* Returns the flag for the update; dead in steps without a push. */
struct edge replicate_due_to_push(struct replicator *r, struct edge flag);
/* Checks, once it is planned how gradients cross, that sums over steps are possible. */
int replicate_check_sums(struct replicator *r);

/* replicate_state.c: a worker that is killed recovers its state. Returns whether it has any; and
 * what it tells the clock of its journal when it joins, EDGE_NONE: it has none, as without state
 * or as a group of several processes. */
bool replicate_has_states(const struct replicator *r);
struct edge replicate_journal_heads(struct replicator *r);
/* Writes all states before the push to the clock; after it come what the worker gives to shards,
 * and the clock's request. Does nothing if workers have no state. */
int replicate_keep_states(struct replicator *r, int push);

/* Returns whether updates are behind a Switch, which leaves them out now and then. */
bool replicate_may_leave_out(const struct replicator *r);
int replicate_refuse_leaving_out(struct replicator *r, const char *why); /* then */

/* replicate_interval.c: which gradients are pushed when, and which nodes of the update depend on
 * that. */
int replicate_find_intervals(struct replicator *r);
/* Returns whether it is in each push to the clock. */
static inline bool replicate_is_steady(const struct replicator *r, const struct push *push)
{
    return push->steps == r->steps;
}
/* After the clock's join: adds nodes that tell which intervals each push has. */
int replicate_add_dues(struct replicator *r);
/* Adds a test whether the number is a multiple of `every`. */
struct edge replicate_due(struct replicator *r, const char *name, struct edge number, int every);
/* Returns the due of an interval, NULL: there is none. A steady push sends all of them. */
struct due *replicate_find_due(struct replicator *r, int steps);
void replicate_send_dues(struct replicator *r, struct push *push);
void replicate_end_intervals(struct replicator *r, struct edge push);
/* The members of a round; dead in a round without the push. */
struct edge replicate_members(struct replicator *r, const struct push *push);
/* Makes the copy of an update's node wait for the node's controls, if the round has them. */
int replicate_wait_in_update(struct replicator *r, const struct node *node, int copy);

/* A worker's own copies of variables, and its counter of steps: */
int replicate_add_local(struct replicator *r);
/* Returns the edge that a worker's node reads for an edge of the source. */
struct edge replicate_read(struct replicator *r, const struct node *reader, struct edge edge);
int replicate_end_local(struct replicator *r);

#endif
