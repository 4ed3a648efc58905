/* SPDX-License-Identifier: Apache-2.0
 *
 * A checkpoint that was made by other shards than those of today: which variables a shard has is
 * known only when a graph comes. Each that is made then, and each resource, gets what the
 * checkpoint has for it, wherever it was.
 *
 * Not thread-safe.
 */
#ifndef TF_PS_CLAIMS_H
#define TF_PS_CLAIMS_H

#include "checkpoint/store/checkpoint.h"
#include "exec/state/resource.h"

struct claims;

/* Takes both. */
struct claims *claims_new(struct store *store, struct checkpoint *checkpoint);
/* Closes them until something is claimed again: the store can be written to, and what nobody needs
 * is pruned, perhaps the checkpoint, too; then it has nothing any more. */
void claims_shut(struct claims *claims);
void claims_free(struct claims *claims); /* NULL is harmless */

/* Gives a new variable, which nobody else knows yet, its value, if the checkpoint has one. ERR_DATA
 * when it does not fit. */
int claims_variable(struct claims *claims, struct variable *variable, struct error *err);

int claims_resource(struct claims *claims, const struct resource *resource, struct error *err);

/* ---- for restoring at once, too ---- */

/* The value of a variable; type DTYPE_INVALID: the checkpoint has none. The caller releases. */
int claims_read(struct checkpoint *checkpoint, struct variable *variable, struct tensor *value,
                uint64_t *updates, struct error *err);

/* All parts of a resource that is there. */
int claims_load(struct checkpoint *checkpoint, const struct resource *resource, struct error *err);

#endif
