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
int worker_put(struct worker *worker, struct saved_variable *saved, struct error *err);
int worker_restore(struct worker *worker, struct stream_reader *reader, struct error *err);
/* Returns a hash of the names of nodes and their ops. */
uint64_t worker_hash_graph(const struct graph *graph, uint64_t seed);

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
    bool with_leaving; /* as of a call */
};
int worker_gather(struct worker *worker, const struct worker_row *row, bool *met,
                  struct tensor *all, struct error *err);

/* ---- worker_state.c ---- */

/* Return whether it is a variable of which each worker has its own, or a part. */
bool worker_has_own(const struct worker *worker, const struct node *node);
bool worker_has_part(const struct worker *worker, const struct node *node);
/* Finds those variables, and the one that tells whether to rest. Called when the session is
 * open. */
void worker_find_state(struct worker *worker);
/* After a restore, possibly by the first worker alone: sets the variables to this worker's share of
 * the saved values, or to zeros. All workers call it alike. */
int worker_take_states(struct worker *worker, struct error *err);

/* Another worker announces that it leaves: keeps the worker's own variables. */
void worker_hear_of_leaving(void *worker);
int worker_keep_before(struct worker *worker, struct error *err);
/* Called by a worker that leaves, once it has saved: gives the others its own variables. */
int worker_give_state(struct worker *worker, struct error *err);

#endif
