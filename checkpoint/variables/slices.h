/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads variables from a checkpoint, however they were, and are, partitioned into row slices.
 */
#ifndef TF_CHECKPOINT_SLICES_H
#define TF_CHECKPOINT_SLICES_H

#include "checkpoint/store/checkpoint.h"
#include "exec/state/saver.h"

/* As saved_parts_load. */
int checkpoint_load_variables(struct checkpoint *checkpoint, const struct load_request *wanted,
                              saved_variables *saved, struct error *err);

/* Errors: those of checkpoint_read and saved_parts_read. The caller releases the value. */
int checkpoint_read_variable(struct checkpoint *checkpoint, const struct variable *like,
                             struct tensor *value, uint64_t *updates, struct error *err);

#endif
