/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints to files, in the form that the name tells.
 */
#ifndef TF_CHECKPOINT_EXPORT_H
#define TF_CHECKPOINT_EXPORT_H

#include "checkpoint/formats/archive.h"
#include "checkpoint/formats/source.h"

struct export_files { /* open for writing; they are not flushed */
    const char *name; /* for errors */
    FILE *file;
    FILE *data; /* of EXPORT_BUNDLE */
};

/* Writes all tensors; `producer` is used for records. */
int source_export(struct source *source, enum export_form form, const struct export_files *files,
                  const char *producer, struct error *err);

/* Writes all tensors as records. */
int source_write_records(struct source *source, int fd, const char *name, const char *producer,
                         struct error *err);

#endif
