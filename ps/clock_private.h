/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the clock share. Everything with a clock as its argument wants it locked, but
 * for clock_timer_end. Private to ps/.
 */
#ifndef TF_PS_CLOCK_PRIVATE_H
#define TF_PS_CLOCK_PRIVATE_H

#include "base/vec.h"
#include "exec/state/aggregate.h"
#include "exec/state/policy.h"

enum push_state {
    PUSH_NONE,
    PUSH_WAITS,  /* for a round */
    PUSH_CHOSEN, /* in the round that is under way */
};

enum clock_wait { WAIT_JOIN, WAIT_PUSH, WAIT_ROUND, WAIT_PAUSE };

struct member {
    int64_t worker;
    uint64_t incarnation;
    bool joined, left;
    bool returns;     /* had left when it was saved, and is expected to join again */
    int64_t clock;    /* its pushes that are applied */
    int64_t last_seq; /* decided */
    bool last_counted;
    enum push_state state;
    struct push_id push; /* unless PUSH_NONE */
    int64_t version;     /* that the push was computed from */
    int64_t arrival;
    int64_t pushed, counted, late, dropped, duplicate;
    double waited, seen; /* seconds; when */
};

typedef VEC(struct push_id) push_vec;

struct clock {
    const char *name;
    pthread_mutex_t lock; /* guards what follows */
    struct policy policy;
    int workers;                     /* expected */
    bool is_configured, is_restored; /* by a graph; from a checkpoint, and not by a graph since */
    int64_t version, arrivals;
    VEC(struct member) members; /* by rank */
    bool under_way;             /* a round was handed out */
    int pauses;                 /* while there are any, no round begins */
    _Atomic int64_t *counts;    /* of pushes that counted, by worker, for others; or NULL */
    int n_counts;
    int64_t stop_at; /* the version at which none begins; 0: none */
    push_vec dropped, round_members, round_dropped;
    struct clock_waiter *waiters;
    struct error failure; /* no code: none */

    pthread_cond_t changed; /* for the thread of the deadlines */
    pthread_t timer;
    bool has_timer, ends;
};

double clock_now(void); /* monotonic, seconds */

/* policy.c */
/* Puts the members of the next round into PUSH_CHOSEN, if there is a set. */
bool policy_choose(struct clock *clock);
/* Whether a push, computed from that version, can never count. */
bool policy_is_late(const struct clock *clock, const struct member *member);
/* Whether a worker whose last push is decided may go on. */
bool policy_releases(const struct clock *clock, const struct member *member);
/* Whether the rounds, or who waits in them, want something of this worker. */
bool policy_misses(const struct clock *clock, const struct member *member);

/* clock.c */
struct member *clock_member(struct clock *clock, int64_t worker, bool make);
void clock_wait(struct clock *clock, struct clock_waiter *waiter, enum clock_wait what);
/* After every change: tells all whose wait is over, when the lock is gone. */
void clock_unlock(struct clock *clock);
/* The push of a member that waits never counts. */
void clock_decide_late(struct clock *clock, struct member *member);

/* clock_state.c */
int clock_save(void *object, struct resource_sink *sink, struct error *err);
int clock_load(void *object, const char *part, const struct tensor *value, struct error *err);
void clock_print_missing(const struct clock *clock, struct str *text);

/* clock_timer.c: the thread that ends waits whose deadline has passed. */
void clock_timer_start(struct clock *clock);
void clock_timer_end(struct clock *clock); /* not locked */

#endif
