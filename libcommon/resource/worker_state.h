/* SPDX-License-Identifier: Apache-2.0
 *
 * The other workers' values of a variable of which each worker has its own (graph/worker_attr.h): a
 * kind of resource with the variable's name, in the worker that saves. With it a checkpoint of that
 * worker contains all values: the variable has its own, this resource the others'.
 *
 * Thread-safe.
 */
#ifndef TF_RESOURCE_WORKER_STATE_H
#define TF_RESOURCE_WORKER_STATE_H

#include "exec/state/resource.h"

struct worker_state;
extern const struct resource_kind worker_state_kind;

/* `ranks` int64[1 + n]: the rank of the variable's worker, then those of n others; `values` has the
 * n others' values along a first dimension. Shares their buffers. */
void worker_state_set(struct worker_state *state, const struct tensor *ranks,
                      const struct tensor *values);
/* Removes the others' values. */
void worker_state_clear(struct worker_state *state);

/* Returns false if there are none. The caller releases both. */
bool worker_state_get(struct worker_state *state, struct tensor *ranks, struct tensor *values);

#endif
