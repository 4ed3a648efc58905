/* SPDX-License-Identifier: Apache-2.0
 *
 * What workers keep for themselves, one value each, as they last gave it to the shards: a kind of
 * resource that bears the name of the worker's variable. It is there so that checkpoints, and
 * workers that come back, have it; of when it is given, resource/clock.h.
 *
 * Thread-safe.
 */
#ifndef TF_RESOURCE_WORKER_VALUE_H
#define TF_RESOURCE_WORKER_VALUE_H

#include "exec/state/resource.h"

struct worker_values;
extern const struct resource_kind worker_value_kind;

/* Shares counted memory, in place of what the worker gave before. */
void worker_value_give(struct worker_values *values, int64_t worker, const struct tensor *value);

/* Takes the value that the worker has given, and from then on those of workers that are not there
 * any more: of n workers it takes over worker + n, worker + 2 n, ... 0: n is not known. *value is a
 * share that the caller releases; type DTYPE_INVALID: there is none. ERR_DATA: they are no numbers
 * of one shape. */
int worker_value_take(struct worker_values *values, int64_t worker, int64_t n, struct tensor *value,
                      struct error *err);

#endif
