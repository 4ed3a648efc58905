/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads variables from a checkpoint, however they were, and are, partitioned into row slices.
 */
#ifndef TF_CHECKPOINT_SLICES_H
#define TF_CHECKPOINT_SLICES_H

#include "checkpoint/store/checkpoint.h"
#include "exec/state/variable.h"

/* Checks that the checkpoint has all rows of such a variable, under its name or in slices of the
 * same whole. ERR_DATA naming it if what is there does not fit; ERR_NOINPUT if nothing is there. */
int checkpoint_has_variable(struct checkpoint *checkpoint, const struct variable *like,
                            struct error *err);

/* Errors: those of the above, of checkpoint_read and saved_parts_read. The caller releases the
 * value. */
int checkpoint_read_variable(struct checkpoint *checkpoint, const struct variable *like,
                             struct tensor *value, uint64_t *updates, struct error *err);

#endif
