/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the clock share. Everything with a clock as its argument wants it locked, but
 * for clock_timer_end. Private to libcommon/resource.
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
    PUSH_CHOSEN, /* in the round that is under way */
};

enum clock_wait { WAIT_JOIN, WAIT_PUSH, WAIT_REST, WAIT_ROUND, WAIT_PAUSE };

struct clock_member {
    int64_t worker;
    uint64_t incarnation;
    bool joined, left;
    bool returns;     /* had left when it was saved, and is expected to join again */
    int64_t clock;    /* its pushes that are applied */
    int64_t last_seq; /* decided */
    int64_t kept_seq; /* that its state on the shards is as of */
    bool last_counted;
    bool has_own; /* its journal has its state, as of its last push */
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
    int64_t incarnation;  /* of this object: a number that no other clock has */
    pthread_mutex_t lock; /* guards what follows */
    struct policy policy;
    int workers;                     /* expected */
    bool is_configured, is_restored; /* by a graph; from a checkpoint, and not by a graph since */
    int64_t version, arrivals;
    VEC(struct clock_member) members; /* by rank */
    int64_t least_applied;            /* of members that have not left, by their clocks, */
    int64_t least_pushed;             /* and by clocks that count a push that waits */
    bool under_way;                   /* a round was handed out */
    bool was_joined;                  /* by a worker, in this process */
    int pauses;                       /* while there are any, no round begins */
    bool by_worker;                   /* its steps drive the rounds */
    bool keeps;                       /* workers have states, */
    int askers;                       /* who ask for them; */
    bool asks;                        /* they are asked for now, */
    int64_t ask_clock;                /* since nobody had a later clock than the one before this, */
    int64_t ask_version;              /* and of this version all who wait for it are told so; */
    int64_t seen_version;             /* that of the last change */
    bool is_lost;                     /* a state, which the failure is about */
    _Atomic uint64_t *counts;         /* of pushes that counted, by worker, for others; or NULL */
    int n_counts;
    int64_t stop_at; /* the version at which none begins; 0: none */
    push_vec dropped, round_members, round_dropped;
    struct clock_waiter *waiters;
    struct error failure; /* no code: none */

    pthread_cond_t changed; /* for the thread of the deadlines */
    pthread_t timer;
    bool has_timer, ends;
};

/* clock_policy.c: what the clock's policy says. Without one nothing is chosen, and nobody waits.
 * The least clocks are found once after every change, not again for each worker that waits. */
void clock_update_least(struct clock *clock);
bool clock_choose(struct clock *clock);
bool clock_is_late(const struct clock *clock, const struct clock_member *member);
bool clock_may_go_on(const struct clock *clock, const struct clock_member *member);
bool clock_misses(const struct clock *clock, const struct clock_member *member);
/* Returns whether a worker that has states is asked for it with the answer to its last push. */
bool clock_asks_for(const struct clock *clock, const struct clock_member *member);
/* For policies: returns whether the member's push waits and may count. */
bool clock_is_fresh(const struct clock *clock, const struct clock_member *member);
struct clock_member *clock_first_fresh(struct clock *clock);

/* clock.c */
struct clock_member *clock_member(struct clock *clock, int64_t worker, bool make);
void clock_wait(struct clock *clock, struct clock_waiter *waiter, enum clock_wait what);
/* Unlocks after a change, and tells all whose wait is over. */
void clock_unlock(struct clock *clock);
/* The push of a member that waits never counts. */
void clock_decide_late(struct clock *clock, struct clock_member *member);

/* clock_rest.c: whether workers are asked for states, which is found anew after every change; and
 * whether the state of each, as of what was decided, is on the shards. */
void clock_update_asks(struct clock *clock);
bool clock_rests(const struct clock_member *member);
bool clock_all_rest(const struct clock *clock);
/* A worker comes back, with a journal that has these copies: whether its state as of its last push
 * that is decided, or will be, is there. If it is nowhere the clock has failed. */
void clock_find_state(struct clock *clock, struct clock_member *member,
                      const struct journal_head *heads, int n);

/* clock_state.c */
void clock_describe(void *object, struct str *text);
void *clock_mark(void *object);
void clock_free_mark(void *mark);
int clock_save(const void *mark, struct resource_sink *sink, struct error *err);
int clock_restore(void *object, const char *part, const struct tensor *value, struct error *err);
/* Forgets the waiting pushes of members that were restored: workers that join again push them
 * again. */
void clock_forget_waiting(struct clock *clock);
void clock_print_missing(const struct clock *clock, struct str *text);

/* clock_timer.c: the thread that ends waits whose deadline has passed. */
void clock_timer_start(struct clock *clock);
void clock_timer_end(struct clock *clock); /* not locked */

#endif
