/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the clock's files, and private to libcommon/resource. Functions that take a clock
 * expect it to be locked.
 */
#ifndef TF_RESOURCE_CLOCK_PRIVATE_H
#define TF_RESOURCE_CLOCK_PRIVATE_H

#include "base/time.h"
#include "base/vec.h"
#include "resource/clock.h"
#include "resource/policy.h"

enum push_state {
    PUSH_NONE,
    PUSH_WAITS,  /* for a round */
    PUSH_CHOSEN, /* in the current round */
};

enum clock_wait { WAIT_JOIN, WAIT_PUSH, WAIT_REST, WAIT_ROUND, WAIT_PAUSE };

typedef VEC(struct push_id) push_vec;

struct clock {
    const char *name;
    int64_t incarnation;  /* of this object, unique among all clocks */
    pthread_mutex_t lock; /* guards the members below */
    struct policy policy;
    int workers;                     /* expected */
    bool is_configured, is_restored; /* by a graph; from a checkpoint, without a graph since */
    int64_t version, arrivals;
    VEC(struct clock_member) members; /* by rank */
    int64_t least_applied;            /* least clock of members that have not left, */
    int64_t least_pushed;             /* and least when waiting pushes count as applied */
    bool under_way;                   /* a round was handed out */
    bool was_joined;                  /* a worker has joined in this process */
    int pauses;                       /* no round begins while it is > 0 */
    bool by_worker;                   /* its steps drive the rounds */
    bool keeps;                       /* workers have states */
    int askers;                       /* number of requests for states */
    bool asks;                        /* states are requested now; */
    int64_t ask_clock;                /* one more than the latest clock when that began, */
    int64_t ask_version;              /* and the first version whose waiters all are told so */
    int64_t seen_version;             /* version at the last change */
    bool is_lost;                     /* the failure is a lost state */
    _Atomic uint64_t *counts;         /* counted pushes by worker, for other processes; or NULL */
    int n_counts;
    int64_t stop_at;  /* no round begins at this version; 0: no limit */
    push_vec dropped; /* will never count: the shards discard them with the next round */
    push_vec round_members, round_dropped;
    struct clock_waiter *waiters;
    struct error failure; /* code 0: none */

    pthread_cond_t changed; /* for the timer thread */
    pthread_t timer;
    bool has_timer, ends;
};

/* clock_policy.c: decisions of the policy. Without one no push is chosen, and no worker waits.
 * clock_update_least runs once per change, not again for each worker that waits. */
void clock_update_least(struct clock *clock);
bool clock_choose(struct clock *clock);
bool clock_is_late(const struct clock *clock, const struct clock_member *member);
bool clock_may_go_on(const struct clock *clock, const struct clock_member *member);
bool clock_misses(const struct clock *clock, const struct clock_member *member);
/* Returns whether the reply to a worker's last push asks for its state. */
bool clock_asks_for(const struct clock *clock, const struct clock_member *member);
/* For policies: returns whether the member has a waiting push that may count. */
bool clock_is_fresh(const struct clock *clock, const struct clock_member *member);
struct clock_member *clock_first_fresh(struct clock *clock);

/* clock.c */
struct clock_member *clock_member(struct clock *clock, int64_t worker, bool make);
/* Returns whether the state of the worker, as of the decided pushes, is on the shards. */
bool clock_rests(const struct clock_member *member);
/* Unlocks after a change, and calls all waiters whose wait is over. */
void clock_unlock(struct clock *clock);

/* clock_state.c */
void clock_describe(void *object, struct str *text);
void *clock_snapshot(void *object);
int clock_save(const void *snapshot, struct resource_sink *sink, struct error *err);
int clock_restore(void *object, const char *part, const struct tensor *value, struct error *err);
/* Discards the waiting pushes of restored members: workers that join again repeat them. */
void clock_forget_waiting(struct clock *clock);
void clock_print_missing(const struct clock *clock, struct str *text);

#endif
