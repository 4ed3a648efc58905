/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker: the driver of one task of a cluster. It takes its instance of a cut graph, runs the
 * part on its own task and drives the rest, joins and leaves the training that the graph describes,
 * and saves and restores variables on all tasks.
 */
#ifndef TF_TRANSPORT_WORKER_H
#define TF_TRANSPORT_WORKER_H

#include "exec/device/device_set.h"
#include "exec/session/driver.h"
#include "exec/state/saver.h"
#include "exec/step/collective.h"
#include "transport/job/member.h"
#include "transport/session/driver_session.h"
#include "transport/session/worker_life.h"

struct worker_options {
    struct member_options member;
    struct graph *graph;      /* all parts; becomes this worker's instance */
    struct plan_options plan; /* variables: the worker's own */
    struct device_options device;

    /* Called before others can link to the worker, to register what it answers (conns_verb) about
     * `variables`. NULL: it answers nothing, and listens only if workers exchange values. Without
     * exchanges it runs even where it cannot listen. */
    void (*answers)(void *context, struct conns *conns);
    void *context;
};

/* A meeting of the workers that leave with those that stay (worker_state.c). */
struct worker_departure {
    int64_t step;        /* the first step without the workers that leave */
    int64_t n, n_stay;   /* number of workers that meet, and that stay */
    int64_t first, own;  /* rank of the first that stays; own place among those, -1: it leaves */
    int64_t saver;       /* rank of a worker that is about to save; -1: none */
    struct tensor ranks; /* of all that meet */
};

struct worker {
    struct worker_options options;
    enum worker_life state;
    int replica; /* its number among the workers: of its task, or of the group it is first of */
    struct member member;
    struct device_set devices;
    struct variable_store *variables; /* on this task */
    struct driver_session *session;
    struct collective *collective;  /* of the job's workers; NULL: they exchange nothing */
    VEC(const struct node *) own;   /* variables of which each worker has its own */
    VEC(const struct node *) parts; /* variables of which each worker has a part */
    const struct node *version;     /* the version that it computes from; NULL: there is no clock */
    const struct node *asked;       /* tells whether to rest; NULL: it never rests */
    int64_t average_every;          /* steps between averages of all workers; 0: none */
    int64_t averaged;               /* the step of the last average, or of the start */
    int64_t n_left;                 /* number of workers that left before the last step */
    struct worker_departure parting; /* valid in WORKER_PARTS */
    saved_variables before;          /* its own variables before the first step without another */
};

/* Call worker_close in any case. Errors as of member_open and driver_session_open. */
int worker_open(struct worker *worker, const struct worker_options *options, struct error *err);
void worker_close(struct worker *worker);

/* Makes the driver run its steps through this worker. */
void worker_bind_driver(struct worker *worker, struct driver *driver);

/* A worker's values at its start. */
struct worker_origin {
    struct stream_reader *reader; /* values of the variables; NULL: none */
    bool is_restored;             /* the variables have their values already, */
    int64_t step;                 /* as of this step */
    int64_t seen; /* the newest step in the store that it was told to resume from; -1: none */
};

/* Called before the first step. Workers that each have all variables (--mode allreduce) run the
 * entry init, or get the initial values of the first worker, and check that they agree. Otherwise
 * the first worker of the job gives the variables their values: from the reader, if there is one,
 * else by the entry init, if the entry ready says that they have none; the others wait until ready
 * says so. Then the entry join is run, if the graph has it: *counted steps of this worker count
 * already. ERR_UNAVAILABLE names what is not initialized; ERR_CONFIG and ERR_DATA name what workers
 * disagree about. */
int worker_start(struct worker *worker, struct driver *driver, const struct worker_origin *origin,
                 int64_t *counted, struct error *err);

/* Workers that go on together end after the same step: if one is asked to end, the latest that any
 * has begun. Returns whether the driver has run that step; waits until it is known. `asked`: this
 * worker was asked to end. */
bool worker_is_over(struct worker *worker, const struct driver *driver, bool asked);
/* As worker_is_over, for a worker that was asked and waits for feeds; false if it is unknown. */
bool worker_ends_wait(struct worker *worker, const struct driver *driver);
/* Called before a step; returns false if all end before it. A cancelled step begins, to fail.
 * `last`: it shall be the last one. It is the last one of all workers that go on together, as none
 * begins another before this worker has contributed; workers on their own end before it. */
bool worker_begins(struct worker *worker, const struct driver *driver, bool asked, bool last);

/* Moments at which a worker runs entries of its own, those that are due (worker.c has a table). */
enum worker_moment {
    MOMENT_START = 1,   /* within worker_start, once variables have their values */
    MOMENT_STARTED = 2, /* it has joined, and fed records that count are passed over */
    MOMENT_STEPPED = 4, /* after a step */
    MOMENT_IDLE = 8,    /* the next step may be far off */
    MOMENT_LAST = 16    /* after its last step, which is not settled */
};
int worker_moment(struct worker *worker, struct driver *driver, enum worker_moment moment,
                  struct error *err);

/* Returns the step at which workers meet after that one: it, or that of its average. */
static inline int64_t worker_average_step(const struct worker *worker, int64_t step)
{
    int64_t every = worker->average_every;
    return every ? (step + every - 1) / every * every : step;
}

/* Returns whether the variables are the same in all workers, not changed by this one since the last
 * average: only then may they be saved. */
bool worker_is_settled(const struct worker *worker, int64_t step);

/* Called at the end, in any state: runs the entry leave, if the worker has joined. If others go on,
 * gives them its state that counts for all. */
int worker_leave(struct worker *worker, struct driver *driver, struct error *err);

/* Returns whether this worker writes the variables to checkpoints. If each worker has all, that is
 * the first that took part in the last step, and if others leave, once they have left. */
bool worker_writes(const struct worker *worker);

/* Returns whether workers that go on together have variables of their own, or parts. Then all say
 * after each step whether they are about to save, `saves`, and give the first one what it needs for
 * that. `step`: that of worker_average_step. `again`: some have left, so another may be the first,
 * and all say it once more. */
bool worker_shares_state(const struct worker *worker);
int worker_gather_state(struct worker *worker, int64_t step, bool saves, bool *again,
                        struct error *err);
/* Keeps only this worker's part of variables that a checkpoint or a restore has made whole. */
int worker_cut_parts(struct worker *worker, struct error *err);
/* As worker_gather_state, when workers end. If others go on, a worker that ends and `saves` gets
 * their state as of that step. */
int worker_gather_last(struct worker *worker, int64_t step, bool saves, struct error *err);

/* Makes the call of workers that go on together for one value, and waits; the caller releases the
 * result. Without kinds, it gathers the rows of all workers by rank. `met` NULL: waits for all that
 * have not left. Else *met is false, and there is no result, once others have gone on to a later
 * step. */
int worker_exchange(struct worker *worker, struct collective_call call, const struct tensor *value,
                    bool *met, struct tensor *result, struct error *err);

/* Sets *n to the steps since the last push of a worker that pushes every `every` steps; they count
 * for nothing when it leaves. 0 if each step is pushed. */
int worker_count_unpushed(struct worker *worker, int64_t *n, int64_t *every, struct error *err);

/* Returns the device for new variables. */
struct device *worker_device(struct worker *worker);

/* Writes all variables of the graph that have a value; the caller finishes the stream. */
int worker_save(struct worker *worker, int64_t step, struct stream_writer *writer,
                struct error *err);

#endif
