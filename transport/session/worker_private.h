/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the worker share. Private to transport.
 */
#ifndef TF_TRANSPORT_WORKER_PRIVATE_H
#define TF_TRANSPORT_WORKER_PRIVATE_H

#include "transport/session/worker.h"

/* The remote task of the session that has the node; -1: this one. */
int worker_task_of(const struct worker *worker, const struct node *node);

/* The value of a variable, wherever it is, and giving it one. */
int worker_take(struct worker *worker, struct saved_variable *saved, struct error *err);
int worker_put(struct worker *worker, struct saved_variable *saved, struct error *err);
int worker_restore(struct worker *worker, struct stream_reader *reader, struct error *err);

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

/* ---- worker_state.c ---- */

/* Whether it is a variable of which each worker has its own. */
bool worker_has_own(const struct worker *worker, const struct node *node);
/* After a restore, which the first worker alone may have done: the value becomes this worker's part
 * of what was saved, or zeros. All call it alike. */
int worker_take_state(struct worker *worker, const struct node *node, uint64_t which,
                      struct error *err);

/* worker_update.c: where a graph has a ClockRound, has the shard that it is on run its
 * entry. */
int worker_ask_for_updates(struct worker *worker, struct error *err);

#endif
