/* SPDX-License-Identifier: Apache-2.0
 *
 * Deferred restore from a checkpoint made by a different set of shards: a shard learns only from a
 * graph which variables it has. Each variable or resource created then gets its value from the
 * checkpoint, whichever shard had saved it.
 *
 * Not thread-safe.
 */
#ifndef TF_PS_CLAIMS_H
#define TF_PS_CLAIMS_H

#include "checkpoint/store/checkpoint.h"
#include "exec/state/resource.h"

struct claims;

/* Takes ownership of both. */
struct claims *claims_new(struct store *store, struct checkpoint *checkpoint);
/* Closes both until something is claimed again. Meanwhile the store can be written and pruned,
 * which may remove the checkpoint; then there is nothing left to claim. */
void claims_shut(struct claims *claims);
void claims_free(struct claims *claims); /* NULL is harmless */

/* Gives a new variable, which nobody else uses yet, its value, if the checkpoint has one. ERR_DATA:
 * it does not fit. */
int claims_variable(struct claims *claims, struct variable *variable, struct error *err);

int claims_resource(struct claims *claims, const struct resource *resource, struct error *err);

/* ---- also for restoring at once ---- */

/* Reads the value of a variable; type DTYPE_INVALID: there is none. The caller releases it. */
int claims_read(struct checkpoint *checkpoint, struct variable *variable, struct tensor *value,
                uint64_t *updates, struct error *err);

/* Loads all parts of an existing resource. */
int claims_load(struct checkpoint *checkpoint, const struct resource *resource, struct error *err);

#endif
