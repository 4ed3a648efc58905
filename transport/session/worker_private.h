/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the worker's files. Private to transport.
 */
#ifndef TF_TRANSPORT_WORKER_PRIVATE_H
#define TF_TRANSPORT_WORKER_PRIVATE_H

#include "exec/step/collective.h"
#include "transport/session/worker.h"

/* Returns the index of the remote task that has the node; -1: it is on this task. */
int worker_task_of(const struct worker *worker, const struct node *node);

/* Get and set the value of a variable on any task. */
int worker_take(struct worker *worker, struct saved_variable *saved, struct error *err);
/* As worker_take; ERR_DATA if the variable has no value. */
int worker_take_value(struct worker *worker, struct saved_variable *saved, struct error *err);
int worker_put(struct worker *worker, struct saved_variable *saved, struct error *err);
int worker_restore(struct worker *worker, struct stream_reader *reader, struct error *err);

/* ---- worker_collective.c: does nothing without exchanges in the graph, or with one worker ---- */

/* Listens, and joins the other workers. Called before the session is opened. */
int worker_open_collective(struct worker *worker, struct error *err);
void worker_close_collective(struct worker *worker);
/* All workers begin with the same variables, restored ones of the first worker if it has any, and
 * after the same step. */
int worker_start_collective(struct worker *worker, struct driver *driver,
                            const struct worker_origin *origin, int64_t *counted,
                            struct error *err);
void worker_leave_collective(struct worker *worker);

/* Gathers a row of int64 of each worker that takes part; the caller releases *all. `met` as of
 * collective_links_run; NULL: waits for all. */
struct worker_row {
    struct collective_key key;
    const int64_t *items;
    int64_t n;
    int64_t says;      /* for worker_meet, in place of items */
    bool with_leaving; /* as of a call */
};
int worker_gather(struct worker *worker, const struct worker_row *row, bool *met,
                  struct tensor *all, struct error *err);

/* ---- worker_state.c ---- */

/* Returns whether it is a variable of which each worker has its own. */
bool worker_has_own(const struct worker *worker, const struct node *node);
/* Finds those variables, those of which each worker has a part, and the one that tells whether to
 * rest. Called when the session is open. */
void worker_find_state(struct worker *worker);
/* After a restore, possibly by the first worker alone: sets the variables to this worker's share of
 * the saved values, or to zeros. All workers call it alike. */
int worker_take_states(struct worker *worker, struct error *err);

/* Returns the shape of n stacked values of the node's variable. */
struct shape worker_stack_shape(const struct node *node, int64_t n);

/* Sends the value to the call's root. With `ranks`, of all that send, this worker is the root, and
 * keeps the values of others beside its own. */
int worker_give_value(struct worker *worker, const struct saved_variable *saved,
                      const struct collective_call *call, const struct tensor *ranks,
                      struct error *err);

/* ---- worker_leave.c ---- */

/* Another worker announces that it leaves: keeps the worker's own variables. */
void worker_hear_of_leaving(void *worker);

int worker_keep_before(struct worker *worker, struct error *err);

/* In worker.c: returns a hash of the names of nodes and their ops. */
uint64_t worker_hash_graph(const struct graph *graph, uint64_t seed);
/* All workers say whether they leave, and whether they are about to save. The caller releases the
 * `ranks` of all, unless *met is false. */
enum { WORKER_SAYS_LEAVE = 1, WORKER_SAYS_SAVE = 2 };
int worker_meet(struct worker *worker, const struct worker_row *row, bool *met,
                struct worker_departure *all, struct error *err);
/* Called after the last step, `step`, if others go on: tells them, and waits until they have run
 * the next step. If it `saves`, their values before that are kept beside its own. */
int worker_begin_parting(struct worker *worker, int64_t step, bool saves, struct error *err);
/* Called afterwards, once it has saved: gives the others its own variables. */
int worker_give_state(struct worker *worker, struct error *err);
/* Called after a step with that many members: finds whether some have left before it, and takes
 * what they give. */
int worker_take_given(struct worker *worker, int64_t step, int64_t n_members, bool *left,
                      struct error *err);

/* ---- worker_part.c ---- */

/* Returns whether it is a variable of which each worker has a part. */
bool worker_has_part(const struct worker *worker, const struct node *node);
/* All workers call this before a checkpoint; then rank `root` has the whole variables. */
int worker_join_parts(struct worker *worker, int64_t step, int root, struct error *err);

#endif
