/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the worker share. Private to transport.
 */
#ifndef TF_TRANSPORT_WORKER_PRIVATE_H
#define TF_TRANSPORT_WORKER_PRIVATE_H

#include "exec/step/collective.h"
#include "transport/session/worker.h"

/* The remote task of the session that has the node; -1: this one. */
int worker_task_of(const struct worker *worker, const struct node *node);

/* The value of a variable, wherever it is, and giving it one. */
int worker_take(struct worker *worker, struct saved_variable *saved, struct error *err);
/* The same; ERR_DATA: it has none. */
int worker_take_value(struct worker *worker, struct saved_variable *saved, struct error *err);
int worker_put(struct worker *worker, struct saved_variable *saved, struct error *err);
int worker_restore(struct worker *worker, struct stream_reader *reader, struct error *err);

/* The step by which workers meet after that one: it, or the one of its average. */
int64_t worker_average_step(const struct worker *worker, int64_t step);

/* ---- worker_collective.c: nothing where the graph has nothing that meets, or one worker ---- */

/* Listens, and meets the other workers. Before the session is opened. */
int worker_open_collective(struct worker *worker, struct error *err);
void worker_close_collective(struct worker *worker);
/* All begin with the same variables, those that the first worker has if it has any, and go on after
 * the same step. */
int worker_start_collective(struct worker *worker, struct driver *driver,
                            const struct worker_origin *origin, int64_t *counted,
                            struct error *err);
void worker_leave_collective(struct worker *worker);

/* Rows of int64 of all workers that take part, one after the other: the caller's to release. `met`
 * as of collective_links_run; NULL: it waits for all. */
struct worker_row {
    struct collective_key key;
    const int64_t *items;
    int64_t n;
    int64_t says;      /* of worker_meet, in place of items */
    bool with_leaving; /* as of a call */
};
int worker_gather(struct worker *worker, const struct worker_row *row, bool *met,
                  struct tensor *all, struct error *err);
/* Makes the call for one value of a kind, and waits; the result is the caller's to release. */
int worker_exchange(struct worker *worker, struct collective_call call, enum collective_kind kind,
                    const struct tensor *value, struct tensor *result, struct error *err);

/* ---- worker_state.c ---- */

/* Returns whether it is a variable of which each worker has its own. */
bool worker_has_own(const struct worker *worker, const struct node *node);
/* Remembers those variables, those of which each worker has a part, and the one that says whether
 * it is asked to rest, since the session is open. */
void worker_find_state(struct worker *worker);
/* After a restore, which the first worker alone may have done: their values become this worker's
 * part of what was saved, or zeros. All call it alike. */
int worker_take_states(struct worker *worker, struct error *err);

/* n values of the node's variable, one after the other. */
struct shape worker_stack_shape(const struct node *node, int64_t n);

/* Gives the value to the call's root; with `ranks`, of all that give, this is it, and keeps what
 * others have beside its own. */
int worker_give_value(struct worker *worker, const struct saved_variable *saved,
                      const struct collective_call *call, const struct tensor *ranks,
                      struct error *err);

/* ---- worker_leave.c ---- */

/* Has what the worker has of its own kept when it hears that another leaves. */
void worker_watch_leaving(struct worker *worker);
void worker_forget_parting(struct worker *worker);

int worker_keep_before(struct worker *worker, struct error *err);

/* worker.c: a hash of the names of nodes and their ops. */
uint64_t worker_hash_graph(const struct graph *graph, uint64_t seed);
/* All say whether they leave, and whether they are about to save. `ranks` of all is the caller's to
 * release, but where *met is false. */
enum { WORKER_SAYS_LEAVE = 1, WORKER_SAYS_SAVE = 2 };
int worker_meet(struct worker *worker, const struct worker_row *row, bool *met,
                struct worker_departure *all, struct error *err);
/* After the last step, `step`, where others go on: tells them, and waits until they have run the
 * next one. If it `saves`, what they had before that is kept beside its own. */
int worker_begin_parting(struct worker *worker, int64_t step, bool saves, struct error *err);
/* Then, once it has saved: gives them what it has of its own. */
int worker_give_state(struct worker *worker, struct error *err);
/* After a step of so many members: whether some have left before it, and takes what they give. */
int worker_take_given(struct worker *worker, int64_t step, int64_t n_members, bool *left,
                      struct error *err);

/* ---- worker_part.c ---- */

/* Returns whether it is a variable of which each worker has a part. */
bool worker_has_part(const struct worker *worker, const struct node *node);
/* Before a checkpoint, all workers alike: that of rank `root` has them whole then. */
int worker_join_parts(struct worker *worker, int64_t step, int root, struct error *err);

#endif
