/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables out of a checkpoint, however they were cut into slices of rows then and are now.
 */
#ifndef TF_CHECKPOINT_SLICES_H
#define TF_CHECKPOINT_SLICES_H

#include "checkpoint/store/checkpoint.h"
#include "exec/state/variable.h"

/* Returns whether the checkpoint has all rows of such a variable, under its name or in slices of
 * the same whole. ERR_DATA naming it when what is there does not fit; ERR_NOINPUT when nothing is.
 * */
int checkpoint_has_variable(struct checkpoint *checkpoint, const struct variable *like,
                            struct error *err);

/* Errors as of that, of checkpoint_read and of saved_parts_read. The caller releases the value. */
int checkpoint_read_variable(struct checkpoint *checkpoint, const struct variable *like,
                             struct tensor *value, uint64_t *updates, struct error *err);

#endif
