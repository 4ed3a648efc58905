/* SPDX-License-Identifier: Apache-2.0
 *
 * What workers push to shards, when, and what they keep for themselves. Private to
 * libcommon/pass.
 */
#ifndef TF_PASS_REPLICATE_PUSH_H
#define TF_PASS_REPLICATE_PUSH_H

#include "pass/replicate/replicate_plan.h"

/* Pushes that have gradients of an interval. */
struct due {
    int steps;
    struct edge due; /* of the result: whether this one is such a push */
    int value;       /* that tells the update, of the steady push */
};

/* A variable of a worker's own that is in checkpoints, of the result, with the gradient that it
 * comes of, and what a push leaves in it, whether it counts or not, or EDGE_NONE. */
struct own_state {
    const struct exchange *of;
    struct edge variable, next;
};

/* A worker's own copy of a variable. */
struct local_copy {
    const struct node *variable; /* of the source */
    struct edge copy, used;      /* of the result: the copy, and what the step goes by */
};

/* What a worker with shards keeps for itself, of the result. */
struct worker_own {
    struct edge fetches, fires; /* downpour, accumulation: whether this step does; or EDGE_NONE */
    VEC(struct due) dues;       /* with intervals one for each, */
    struct edge pushed_before;  /* how many pushes there were, */
    struct edge pushed;         /* and with this one; */
    node_list held;             /* nodes that come after the reply to a push */
    VEC(struct own_state) states;
    VEC(struct local_copy) locals;
};

/* replicate_clock.c: pushes, takes, the clock; the entries. */
int replicate_add_pushes(struct replicator *r);
int replicate_add_update(struct replicator *r);
int replicate_end_update(struct replicator *r);
/* The entry that a worker runs when it is asked to rest: it has given what the tokens are of, and
 * is not asked any more after `set`. */
int replicate_add_rest(struct replicator *r, const struct edge *tokens, int n, struct edge set);

/* replicate_push.c: techniques' way to push the gradient as it is, and to take it. */
void replicate_push_whole(struct replicator *r, struct push *push, struct exchange *x);
void replicate_take_whole(struct replicator *r, const struct push *push, struct exchange *x);
/* The value that is pushed, summed over steps where these have one push. */
struct edge replicate_pushed(struct replicator *r, const struct push *push,
                             const struct exchange *x);
/* Adds a value to what the push sends; `taken`: as its take has it, NULL: as the value is. The
 * second of the gradient's factor, which is of the source. */
void replicate_send(struct replicator *r, struct push *push, struct edge value,
                    const char *reduction, const struct node_output *taken);
void replicate_send_factor(struct replicator *r, struct push *push, struct edge factor,
                           bool is_right);
/* The edge by which a push tells the update where it is pushed at all. */
struct edge replicate_due_to_push(struct replicator *r, struct edge flag);
/* Checks, once it is planned how gradients cross, that there are the sums over steps. */
int replicate_check_sums(struct replicator *r);

/* replicate_state.c: a worker that is killed finds its own again. What the clock is told of the
 * worker's journal when it joins; EDGE_NONE: it has none, as no state is its own, or as a group's
 * are in several processes. */
struct edge replicate_journal_heads(struct replicator *r);
/* Before the push to the clock all states are written; and after it what the worker gives to
 * shards, and is asked for. Nothing where no worker has a state. */
int replicate_keep_states(struct replicator *r, int push);
int replicate_tell_clocks(struct replicator *r);

/* Returns whether updates are behind a Switch, which leaves them out now and then. */
bool replicate_may_leave_out(const struct replicator *r);

/* replicate_interval.c: which gradients are pushed when, and what of the update goes by that. */
int replicate_find_intervals(struct replicator *r);
/* Returns whether it is in each push to the clock. */
static inline bool replicate_is_steady(const struct replicator *r, const struct push *push)
{
    return push->steps == r->steps;
}
/* Behind the clock's join: which pushes have what; and what tells the update. */
int replicate_add_dues(struct replicator *r);
/* Returns whether the number is a multiple of `every`. */
struct edge replicate_due(struct replicator *r, const char *name, struct edge number, int every);
/* The interval's, NULL: there is none; and what the push sends of all of them, if it is steady. */
struct due *replicate_find_due(struct replicator *r, int steps);
void replicate_send_dues(struct replicator *r, struct push *push);
void replicate_end_intervals(struct replicator *r, struct edge push);
/* The members of a round; dead in a round that has nothing of the push. */
struct edge replicate_members(struct replicator *r, const struct push *push);
/* The copy of a node of the update waits for what the node waits for, if that is in the round. */
int replicate_wait_in_update(struct replicator *r, const struct node *node, int copy);

/* What workers keep for themselves. The counter of steps: */
int replicate_add_local(struct replicator *r);
/* The edge that a node of the worker reads for an edge of the source. */
struct edge replicate_read(struct replicator *r, const struct node *reader, struct edge edge);
int replicate_end_local(struct replicator *r);

#endif
