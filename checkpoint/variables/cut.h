/* SPDX-License-Identifier: Apache-2.0
 *
 * A snapshot, for a checkpoint, of all that a process keeps between steps. Variables
 * (exec/state/variable.h) and resources (exec/state/resource.h) are marked, which takes no time,
 * and are collected while steps go on.
 */
#ifndef TF_CHECKPOINT_CUT_H
#define TF_CHECKPOINT_CUT_H

#include "checkpoint/store/save.h"
#include "exec/state/resource.h"
#include "exec/state/variable.h"

struct cut {
    struct variable_snapshots snapshots;
    struct resource_snapshots resources; /* until they are collected */
    VEC(struct variable_record)
    tensors; /* variables, then resources' parts; complete once collected */
    struct arena arena;
};

/* `variables` are locked, so that no step writes them, or are all of the store's, and no step runs.
 * The store outlives the cut; no other cut of it may be uncollected. cut_release in any case. */
void cut_take(struct variable_store *store, const variable_vec *variables, struct cut *cut);

/* Waits for steps that have a variable locked and have not copied its marked value. May be called
 * by any one thread, and again after an error. ERR_OS: out of memory. */
int cut_collect(struct cut *cut, struct error *err);

void cut_release(struct cut *cut);

#endif
