/* SPDX-License-Identifier: Apache-2.0
 *
 * Clocks: the kind of resource that decides how the steps of many workers become updates of one set
 * of variables. There is one clock for all shards. A worker's push counts, on all shards, once the
 * clock has put it into a round; a round is one update. The clock's consistency policy
 * (resource/policy.h) decides when a push counts, and which workers wait for what.
 *
 * No push counts twice: each worker numbers its pushes, and a push that was decided (counted, or
 * given up as late) is never decided again. A returning worker is told the last decided number.
 *
 * The owner of the updates drives the rounds: clock_round waits for the next set of pushes, and
 * clock_advance reports that it is applied. In between no worker is told a version; so no worker
 * starts to read variables while they change (except under async and ssp).
 *
 * Workers may have private state, which a checkpoint must contain (clock_keep_states). Before a
 * checkpoint, workers are asked for it: the reply to a push asks its worker to give its state to
 * the shards and to rest until the checkpoint's moment is over. Rounds continue until all rest. A
 * worker's state is as of its last decided push. If a returning worker finds that state neither on
 * the shards nor in its journal (resource/journal.h), the job can only continue from a checkpoint.
 *
 * Thread-safe. Nothing here blocks a thread: waits end with a callback.
 */
#ifndef TF_RESOURCE_CLOCK_H
#define TF_RESOURCE_CLOCK_H

#include <stdatomic.h>

#include "exec/state/resource.h"
#include "resource/journal.h"
#include "resource/push.h"

struct clock;
extern const struct resource_kind clock_kind;

/* Sets the policy; `workers` is the expected number, 0: those that join. ERR_DATA for invalid
 * values, ERR_CONFIG if the clock already has another policy. */
int clock_configure(struct clock *clock, const char *policy, int workers, struct error *err);

struct clock_result {
    int64_t version;          /* of the variables: applied rounds; clock_round: the new one */
    int64_t seq;              /* join: this worker's last decided push; 0: none */
    bool counted;             /* the push is in the variables */
    bool own;                 /* join: only the worker's journal has its state */
    int64_t incarnation;      /* join: of the clock, for which a journal is written */
    bool asked;               /* push: the worker shall give its state, and rest */
    struct push_list members; /* round: by rank; valid until the round is applied */
    struct push_list dropped; /* pushes that never count, since the last round */
};

/* A waiter, owned by the caller. `done` is called exactly once, without locks, from any thread, and
 * possibly before the waiting call has returned; `failure` NULL: it has a result. */
struct clock_waiter {
    void (*done)(struct clock_waiter *waiter, const struct clock_result *result,
                 const struct error *failure);
    double timeout; /* seconds, then ERR_RETRY naming the missing workers; 0: none */

    /* Private to the clock. */
    int what;
    struct push_id id;
    double since;
    struct clock_result result;
    struct clock_waiter *next;
};

/* A worker starts, or restarts as a new incarnation: pushes of older incarnations are refused from
 * now on, but what they have pushed completely still counts. Replies when that is decided and no
 * round is under way. */
void clock_join(struct clock *clock, const struct push_id *id, struct clock_waiter *waiter);

/* The same for a worker whose journal has these copies. */
void clock_rejoin(struct clock *clock, const struct push_id *id, const struct journal_head *heads,
                  int n, struct clock_waiter *waiter);

/* From now on the only worker's own steps drive the rounds. Nothing is staged: a waiting push ends
 * with its step, and a worker that joins again repeats it. */
void clock_drive_by_worker(struct clock *clock);

/* A worker's push, staged on all shards, of a step computed from `version`. Replies as the policy
 * says, with the version to continue with; at once if it was decided before. ERR_UNAVAILABLE for a
 * worker that has not joined, or was replaced. */
void clock_push(struct clock *clock, const struct push_id *id, int64_t version,
                struct clock_waiter *waiter);

/* Declares that workers have state, which they give to the shards before they rest or leave. */
void clock_keep_states(struct clock *clock);

/* A worker's state, as of its last decided push, is on the shards. Replies when states are no
 * longer asked for, with the version to continue with. Errors as of clock_push. */
void clock_rest(struct clock *clock, const struct push_id *id, struct clock_waiter *waiter);

/* Asks workers for their states until clock_end_ask. They are also asked once the version of
 * clock_stop_at is reached. Does nothing if workers have no states. */
void clock_ask(struct clock *clock);
void clock_end_ask(struct clock *clock);

/* A worker has no more data: it is no longer waited for. */
void clock_leave(struct clock *clock, const struct push_id *id);

/* Waits for the next set of pushes. ERR_DATA if another call waits, or a round is under way. */
void clock_round(struct clock *clock, struct clock_waiter *waiter);

/* The round is applied; `version` is that of clock_round. ERR_DATA if it is not under way. */
int clock_advance(struct clock *clock, int64_t version, struct error *err);

/* Reports that rounds cannot continue: all waiters, present and future, fail with the reason. The
 * next clock_round ends that, unless a round was under way (variables may then be between two
 * updates) or a worker's state is lost. */
void clock_fail(struct clock *clock, const struct error *reason);

/* Replies when the version is at least `version`, no round is under way, and all workers with
 * states rest. From then until clock_resume no round begins: the shards' contents are between two
 * updates. Each reply that is no failure must be followed by one clock_resume. */
void clock_pause(struct clock *clock, int64_t version, struct clock_waiter *waiter);
void clock_resume(struct clock *clock);

/* From now on writes the number of a worker's counted pushes to counts[worker], sealed, before the
 * worker is told; NULL: nowhere. There are n counts, for workers below n. */
void clock_count_in(struct clock *clock, _Atomic uint64_t *counts, int n);

/* No round begins at that version or later, as if paused from then on, except rounds that workers
 * with states need to come to rest; 0: no limit. */
void clock_stop_at(struct clock *clock, int64_t version);

/* Stops waiting. Returns false if `done` was called or is being called. */
bool clock_cancel(struct clock *clock, struct clock_waiter *waiter);

struct clock_member {
    int64_t worker;
    uint64_t incarnation;
    bool joined, left;
    int64_t clock, behind; /* its counted pushes; in a list, how many fewer than the leader's */
    int64_t pushed, counted, late, dropped, duplicate;
    double waited, seen; /* seconds in pushes; time of its last message, in a list seconds since */

    /* Private to the clock. */
    bool returns;     /* had left when saved, but is expected to join again */
    int64_t last_seq; /* decided */
    int64_t kept_seq; /* number of the push that its state on the shards is as of */
    bool last_counted;
    bool has_own;        /* its journal has its state as of its last push */
    int state;           /* enum push_state */
    struct push_id push; /* unless PUSH_NONE */
    int64_t version;     /* that the push was computed from */
    int64_t arrival;
};

/* Lists workers by rank; returns their number, of which at most `max` are stored. */
int clock_workers(struct clock *clock, struct clock_member *workers, int max);
int64_t clock_version(struct clock *clock);

/* Returns whether a worker computes its step from exactly the version that it was told. */
bool clock_has_one_version(struct clock *clock);

/* Returns whether a worker has joined since the clock was created or restored in this process.
 * Workers join only when all variables are initialised. */
bool clock_was_joined(struct clock *clock);

/* Returns whether an update has failed half-way, so that the variables may contain a part of it, or
 * a worker's state is lost: then nothing can continue with them. *reason says why. */
bool clock_has_failed(struct clock *clock, struct error *reason);

#endif
