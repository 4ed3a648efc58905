/* SPDX-License-Identifier: Apache-2.0
 *
 * All that a process keeps between steps, as it was at one moment, for a checkpoint: variables
 * (exec/state/variable.h) and resources (exec/state/resource.h) are marked, which takes no time,
 * and collected while steps go on.
 */
#ifndef TF_CHECKPOINT_CUT_H
#define TF_CHECKPOINT_CUT_H

#include "checkpoint/store/save.h"
#include "exec/state/resource.h"
#include "exec/state/variable.h"

struct cut {
    struct variable_marks marks;
    struct resource_marks resources; /* until they are collected */
    VEC(struct save_tensor) tensors; /* variables, then parts; complete once it was collected */
    struct arena arena;
};

/* The variables are those that are locked, so that no step writes them; where no step runs, all of
 * the store, which lives longer. No other cut of it is uncollected. cut_release in any case. */
void cut_take(struct variable_store *store, const variable_vec *variables, struct cut *cut);

/* Waits for steps that have a variable locked, as far as they have not copied it. By any one
 * thread; after an error it may be tried again. ERR_OS without memory. */
int cut_collect(struct cut *cut, struct error *err);

void cut_release(struct cut *cut);

#endif
