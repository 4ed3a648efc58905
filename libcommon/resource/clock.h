/* SPDX-License-Identifier: Apache-2.0
 *
 * Clocks: the kind of resource that decides how the steps of many workers become updates of one set
 * of variables. There is one clock for all shards. A worker's push counts, on all shards, when the
 * clock has put it into a round; a round is an update. The clock's consistency policy
 * (resource/policy.h) decides when a push counts, and who waits for what.
 *
 * So that nothing counts twice: a worker's pushes are numbered, and what was decided (counted, or
 * given up as late) is never decided again. A worker that comes back is told the last number.
 *
 * The rounds themselves are driven by whoever runs the updates: clock_round waits for the next set,
 * clock_advance says that it is applied. In between nobody is told a version, so that no worker
 * that was told one starts to read while variables change (async and ssp apart).
 *
 * Workers may have state of their own, that a checkpoint has to have (clock_keep_states). Before
 * one is made they are asked for it: a worker that is asked, with the answer to its push, gives its
 * state to the shards and rests until the checkpoint's moment is over. Rounds go on until all rest.
 * A worker's state is as of its last push that was decided; if that is on no shard when the worker
 * comes back, nor in its own journal (resource/journal.h), nothing can go on but from a checkpoint.
 *
 * Thread-safe. Nothing here blocks a thread: what has to wait calls back.
 */
#ifndef TF_RESOURCE_CLOCK_H
#define TF_RESOURCE_CLOCK_H

#include <stdatomic.h>

#include "exec/state/resource.h"
#include "resource/journal.h"
#include "resource/push.h"

struct clock;
extern const struct resource_kind clock_kind;

/* Sets the policy; `workers`: how many are expected, 0: those who join. ERR_DATA on nonsense.
 * ERR_CONFIG when the clock has another one already. */
int clock_configure(struct clock *clock, const char *policy, int workers, struct error *err);

struct clock_result {
    int64_t version; /* of the variables: rounds that were applied; of clock_round: the new one */
    int64_t seq;     /* join: the last of this worker that was decided; 0: none */
    bool counted;    /* it is in the variables */
    bool own;        /* join: the worker's state is in its journal, and nowhere else */
    int64_t incarnation;      /* join: of the clock, which a journal is written for */
    bool asked;               /* push: the worker is to give its state, and to rest */
    struct push_list members; /* round: by rank; valid until it is applied */
    struct push_list dropped; /* pushes that never count, since the last round */
};

/* A waiter, which lives with its owner. `done` is called exactly once, from any thread and perhaps
 * before the call that waits has returned, with no lock held; `failure` NULL: with the result. */
struct clock_waiter {
    void (*done)(struct clock_waiter *waiter, const struct clock_result *result,
                 const struct error *failure);
    double timeout; /* seconds; 0: none. Then ERR_RETRY, naming who is missing */

    /* The clock's own. */
    int what;
    struct push_id id;
    double since;
    struct clock_result result;
    struct clock_waiter *next;
};

/* A worker begins, or begins again as a new incarnation: pushes of older ones are refused from now
 * on, what they pushed whole still counts. Answers when that is decided and no round is under way.
 */
void clock_join(struct clock *clock, const struct push_id *id, struct clock_waiter *waiter);

/* The same of one that has a journal with these copies. */
void clock_rejoin(struct clock *clock, const struct push_id *id, const struct journal_head *heads,
                  int n, struct clock_waiter *waiter);

/* Makes the one worker's own steps drive the rounds from now on. Nothing is staged: a push that
 * waits has ended with its step, and the worker that joins again pushes it again. */
void clock_drive_by_worker(struct clock *clock);

/* A worker's push, staged on all shards, of a step that was computed from `version`. Answers as the
 * policy says, with the version to go on with; at once if it was decided before. ERR_UNAVAILABLE
 * for a worker that did not join, or was replaced. */
void clock_push(struct clock *clock, const struct push_id *id, int64_t version,
                struct clock_waiter *waiter);

/* Says that workers have state, which is on the shards before a worker rests or leaves. */
void clock_keep_states(struct clock *clock);

/* A worker's state, as of its last push that was decided, is on the shards. Answers when nobody
 * asks for states any more, with the version to go on with. Errors as of clock_push. */
void clock_rest(struct clock *clock, const struct push_id *id, struct clock_waiter *waiter);

/* Workers are asked for their states until clock_end_ask; they are, too, when the version of
 * clock_stop_at has come. Nothing where they have none. */
void clock_ask(struct clock *clock);
void clock_end_ask(struct clock *clock);

/* A worker has no more data: nobody waits for it any more. */
void clock_leave(struct clock *clock, const struct push_id *id);

/* Waits for the next set. ERR_DATA while another one waits, or a round is under way. */
void clock_round(struct clock *clock, struct clock_waiter *waiter);

/* The round is applied: `version` is that of clock_round. ERR_DATA when it is not under way. */
int clock_advance(struct clock *clock, int64_t version, struct error *err);

/* The rounds cannot go on: all who wait fail with the reason, and all who come. The next
 * clock_round ends that, unless a round was under way: then variables may be between two updates;
 * or a worker's state is lost. */
void clock_fail(struct clock *clock, const struct error *reason);

/* Answers when the version is `version` or more and no round is under way, and all workers that
 * have states rest; from then on none begins until clock_resume: what shards keep is between two
 * updates. Each answer that is no failure is followed by one clock_resume. */
void clock_pause(struct clock *clock, int64_t version, struct clock_waiter *waiter);
void clock_resume(struct clock *clock);

/* From now on the number of a worker's pushes that count is written to counts[worker], sealed,
 * before the worker is told; NULL: nowhere. The counts are those of workers below n. */
void clock_count_in(struct clock *clock, _Atomic uint64_t *counts, int n);

/* No round begins at that version or later, as if it were paused from then on, but for those that
 * workers with states need to come to rest; 0: none is held back. */
void clock_stop_at(struct clock *clock, int64_t version);

/* Stops waiting. False: `done` has been called, or is being called. */
bool clock_cancel(struct clock *clock, struct clock_waiter *waiter);

struct clock_worker {
    int64_t worker;
    uint64_t incarnation;
    bool joined, left;
    int64_t clock, behind; /* pushes that count; less than the most of all */
    int64_t pushed, counted, late, dropped, duplicate;
    double waited, seen; /* seconds in pushes; since it was last heard of */
};

/* Lists workers by rank; returns how many there are, of which at most `max` are stored. */
int clock_workers(struct clock *clock, struct clock_worker *workers, int max);
int64_t clock_version(struct clock *clock);

/* Returns whether what a worker computes is of the one version that it was told. */
bool clock_has_one_version(struct clock *clock);

/* Returns whether a worker has joined since the clock was made or restored in this process. A
 * worker joins when all variables have their values. */
bool clock_was_joined(struct clock *clock);

/* Returns whether an update has failed on its way, so that half of it may be in the variables, or
 * the state of a worker is lost: nothing goes on with them. *reason says why. */
bool clock_has_failed(struct clock *clock, struct error *reason);

#endif
