/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints to and from files. The form follows from the name: .npz, .safetensors, .index for
 * TensorFlow's checkpoints (with the data in a file beside it), and .ckpt for our own records.
 */
#ifndef TF_CHECKPOINT_EXPORT_H
#define TF_CHECKPOINT_EXPORT_H

#include "checkpoint/formats/archive.h"
#include "checkpoint/formats/source.h"

enum export_form {
    EXPORT_NONE,
    EXPORT_NPZ,
    EXPORT_SAFETENSORS,
    EXPORT_BUNDLE,
    EXPORT_RECORDS,
};

enum export_form export_form_of(const char *path);

struct export_files { /* open for writing; they are not flushed */
    const char *name; /* for errors */
    FILE *file;
    FILE *data; /* of EXPORT_BUNDLE */
};

/* Writes all tensors; `producer` is used for records. */
int source_export(struct source *source, enum export_form form, const struct export_files *files,
                  const char *producer, struct error *err);

/* Writes one tensor, by its name, as .npy. */
int source_export_npy(struct source *source, const char *name, FILE *file, struct error *err);

/* Reads such a file; names of the form "container:name" are split. */
int archive_read(const char *path, struct archive *archive, struct error *err);

#endif
