/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels keep for the duration of a step: stacks and the like. A resource is addressed by a
 * handle that may travel through the graph as a scalar tensor of type resource.
 */
#ifndef TF_EXEC_STEP_H
#define TF_EXEC_STEP_H

#include "exec/plan.h"

/* Hands an object over to the step, which calls `release` on it at its end. Returns its handle,
 * which is never 0. Thread-safe. */
uint64_t step_resource_add(struct step *step, void *object, void (*release)(void *object));

/* The object of a handle, or NULL when there is none of the kind: that is, none that was added with
 * the same `release`. Thread-safe; the object guards itself. */
void *step_resource_get(struct step *step, uint64_t handle, void (*release)(void *object));

/* Called by the executor when nothing of the step runs any more. The step can be used again. */
void step_resources_free(struct step *step);

#endif
