/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker: the driver of one task of a cluster. It takes its instance of a graph that was cut,
 * runs what is on its own task and drives the rest, joins and leaves the training that the graph
 * describes, and saves and restores variables wherever they are.
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
    struct graph *graph; /* all parts; becomes this worker's instance */
    struct plan_options plan;
    struct device_options device;
};

/* Those of the workers that leave meet those who stay (worker_leave.c). */
struct worker_departure {
    int64_t step;       /* the first one without those who leave */
    int64_t n, n_stay;  /* who meets, and how many of them stay: */
    int64_t first, own; /* rank of the first of these; this one's place among them, -1: it leaves */
    int64_t saver;      /* rank of one that leaves and saves the step before; -1: none does */
    struct tensor ranks; /* of all who meet */
};

struct worker {
    struct worker_options options;
    enum worker_life state;
    int replica; /* its number among the workers: of the task, or of the group it is first of */
    struct member member;
    struct device_set devices;
    struct driver_session *session;
    struct collective *collective;  /* of the job's workers; NULL: there is nothing they share */
    VEC(const struct node *) own;   /* variables of which each worker has its own */
    VEC(const struct node *) parts; /* and those of which each has a part */
    const struct node *version;     /* that it computes from; NULL: there is no clock */
    const struct node *asked;       /* whether it is to rest; NULL: it never is */
    int64_t average_every; /* steps from one average of all to the next; 0: there is none */
    int64_t averaged;      /* the step of the last average, or the one that it began at */
    int64_t n_left;        /* how many of them have left before the last step */
    struct worker_departure parting; /* in WORKER_PARTS */
    saved_variables before;          /* what it had of its own before the step without another */
};

/* worker_close in any case. Errors as of member_open and driver_session_open. */
int worker_open(struct worker *worker, const struct worker_options *options, struct error *err);
void worker_close(struct worker *worker);

/* Has the driver run its steps here. */
void worker_bind_driver(struct worker *worker, struct driver *driver);

/* A worker's values at its start. */
struct worker_origin {
    struct stream_reader *reader; /* values of the variables; NULL: none */
    bool is_restored;             /* they have their values already, */
    int64_t step;                 /* as of that step */
    int64_t seen; /* the newest step in the store that it was told to resume from; -1: none */
};

/* Before the first step. Workers that have all variables each (--mode allreduce) run the entry
 * init, or get what the first one has to begin with, and make sure that they agree. Else the first
 * worker of its job gives the variables their values: from the reader, if there is one, else by the
 * entry init, if the entry ready says that they have none; the others wait until ready says so.
 * Then, if the graph has it, the entry join is run: *counted steps of this worker count already.
 * ERR_UNAVAILABLE naming what is not initialized; ERR_CONFIG, ERR_DATA naming what workers disagree
 * about. */
int worker_start(struct worker *worker, struct driver *driver, const struct worker_origin *origin,
                 int64_t *counted, struct error *err);

/* Workers that go on together end after the same step: when one is asked to, that is the latest
 * that any has begun. Whether it is the one that the driver has run last; waits until it is known.
 * `asked`: this worker was asked to end. */
bool worker_is_over(struct worker *worker, const struct driver *driver, bool asked);
/* The same for one that was asked and waits for feeds; false also as long as it is not known. */
bool worker_ends_wait(struct worker *worker, const struct driver *driver);
/* Before a step: false when all end before it. One that is cancelled begins, to fail. `last`: it is
 * to be the last one. It is that of all workers that go on together, as none has begun another
 * before this one has brought its part; others end before it, alone. */
bool worker_begins(struct worker *worker, const struct driver *driver, bool asked, bool last);

/* After a step, or when it has joined: if shards ask for what the worker keeps for itself, runs the
 * entry rest, which gives it to them and waits until it is in a checkpoint. `is_idle`: there may be
 * no next step for long; it gives it in any case, so that they need not wait for that. */
int worker_rest(struct worker *worker, struct driver *driver, bool is_idle, struct error *err);

/* After a step: where workers step by themselves, and this one is due or the worker's last, all
 * take the mean of what they have (the entry average). The last one meets the others at the step
 * that is due next. */
int worker_average(struct worker *worker, struct driver *driver, bool is_last, struct error *err);
/* Returns whether the variables are as all have them, not this worker's alone until the next
 * average: only then may they be saved. */
bool worker_is_settled(const struct worker *worker, int64_t step);

/* At the end, whatever its state: runs the entry leave, if it has joined. Where others go on, gives
 * them what it has that counts for all. */
int worker_leave(struct worker *worker, struct driver *driver, struct error *err);

/* Returns whether the variables are for this worker to write. Where each has all, that is the first
 * of those who took part in the last step, and if others leave, once they have. */
bool worker_writes(const struct worker *worker);

/* Returns whether workers that go on together have variables of their own each, or parts: then all
 * say after each step whether they are about to save, `saves`, and give the first one what it needs
 * for that. `again`: some have left meanwhile, and another may be the first; all say so once more;
 * */
bool worker_shares_state(const struct worker *worker);
int worker_gather_state(struct worker *worker, int64_t step, bool saves, bool *again,
                        struct error *err);
/* of what was whole for that, or was restored, it keeps its part again; */
int worker_cut_parts(struct worker *worker, struct error *err);
/* and do so when they end. If others go on, who ends and `saves` gets what they had after the
 * step. */
int worker_gather_last(struct worker *worker, int64_t step, bool saves, struct error *err);

/* Gathers the rows that each of the workers brings that go on together, by rank; *all is the
 * caller's to release. `met` NULL: it waits for all that have not left. Else *met is false, and
 * nothing is gathered, once others have gone on to a later step. */
int worker_gather_rows(struct worker *worker, const struct collective_key *key,
                       const struct tensor *rows, bool *met, struct tensor *all, struct error *err);

/* Steps since the last push of a worker that pushes every `every` steps only: *n of them, which
 * count for nothing when it leaves. 0 where each step is pushed. */
int worker_count_unpushed(struct worker *worker, int64_t *n, int64_t *every, struct error *err);

/* Where this worker's own variables are, and the device that new ones go to. */
struct variable_store *worker_variables(struct worker *worker);
struct device *worker_device(struct worker *worker);

/* Writes all variables of the graph that have a value; the caller finishes the stream. */
int worker_save(struct worker *worker, int64_t step, struct stream_writer *writer,
                struct error *err);

#endif
