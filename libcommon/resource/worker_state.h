/* SPDX-License-Identifier: Apache-2.0
 *
 * What other workers have of a variable of which each has its own (graph/worker_attr.h): a kind of
 * resource that bears the variable's name, in the worker that saves. It is there so that a
 * checkpoint of that worker has all of them: the variable is its own value, this is the others'.
 *
 * Thread-safe.
 */
#ifndef TF_RESOURCE_WORKER_STATE_H
#define TF_RESOURCE_WORKER_STATE_H

#include "exec/state/resource.h"

struct worker_state;
extern const struct resource_kind worker_state_kind;

/* `ranks` int64[1 + n]: the rank of the worker whose the variable is, and those of n others;
 * `values` has their n values, one after the other along a first dimension. Shares counted memory.
 */
void worker_state_set(struct worker_state *state, const struct tensor *ranks,
                      const struct tensor *values);
/* There are no others. */
void worker_state_clear(struct worker_state *state);

/* False: there are none. The caller releases both. */
bool worker_state_get(struct worker_state *state, struct tensor *ranks, struct tensor *values);

#endif
