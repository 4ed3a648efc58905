/* SPDX-License-Identifier: Apache-2.0
 *
 * Private values of workers, one each, as last given to the shards: a kind of resource with the
 * name of the worker's variable. Checkpoints and returning workers read it; resource/clock.h says
 * when it is given.
 *
 * Thread-safe.
 */
#ifndef TF_RESOURCE_WORKER_VALUE_H
#define TF_RESOURCE_WORKER_VALUE_H

#include "exec/state/resource.h"

struct worker_values;
extern const struct resource_kind worker_value_kind;

/* Stores a share of the value in place of the worker's previous one. */
void worker_value_give(struct worker_values *values, int64_t worker, const struct tensor *value);

/* Takes the worker's value, and with it those of workers that no longer exist: of n workers, worker
 * takes over worker + n, worker + 2 n, ... 0: n is unknown. *value is a share that the caller
 * releases; type DTYPE_INVALID: there is none. ERR_DATA: values are not numbers of one shape. */
int worker_value_take(struct worker_values *values, int64_t worker, int64_t n, struct tensor *value,
                      struct error *err);

#endif
