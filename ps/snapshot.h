/* SPDX-License-Identifier: Apache-2.0
 *
 * All that a shard keeps, as it was at one moment: a copy in host memory, taken in a stop that
 * lasts as long as copying, and written to a file while steps go on.
 *
 * The file is a stream of tensor records (exec/saver.h says which), so tf-show reads it.
 */
#ifndef TF_PS_SNAPSHOT_H
#define TF_PS_SNAPSHOT_H

#include "exec/variable.h"
#include "ps/manifest.h"

struct snapshot;

/* Holds all variables for reading at once, copies those that have a value, and lets go; then the
 * resources. ERR_RETRY when a step does not give a variable back within `seconds`. */
int snapshot_take(struct variable_store *store, int64_t step, double seconds,
                  struct snapshot **snapshot, struct error *err);
void snapshot_free(struct snapshot *snapshot);

/* Into a folder, as `name`, durable on return, and read again for its digest. What was there under
 * the name before stays if it fails. */
int snapshot_write(const struct snapshot *snapshot, const char *folder, const char *name,
                   struct manifest_file *written, struct error *err);

/* Makes the store what it was: values and counts of updates, resources; a variable that the file
 * lacks has no value then. Variables that are not there yet are made on `device`. No value is
 * changed when the file cannot be read to its end or does not fit. */
int snapshot_restore(struct variable_store *store, struct device *device, const char *path,
                     double seconds, struct error *err);

#endif
