/* SPDX-License-Identifier: Apache-2.0
 *
 * Named tensors, to and from the files of other programs.
 */
#ifndef TF_CHECKPOINT_ARCHIVE_H
#define TF_CHECKPOINT_ARCHIVE_H

#include <stdio.h>

#include "base/arena.h"
#include "base/vec.h"
#include "wire/record.h"

struct archive_entry {
    const char *name;
    enum dtype type;
    struct shape shape;
    uint64_t bytes;
};

/* The tensors to be written: listed first, then read one by one, so that only one is in memory. */
struct archive_input {
    const struct archive_entry *entries;
    size_t n;
    int (*read)(void *context, size_t i, struct tensor *value, struct error *err);
    void *context;
};

/* An archive that was read. */
struct archive {
    VEC(struct named_tensor) tensors;
    struct arena arena;
};

void archive_release(struct archive *archive); /* empty afterwards */

enum export_form {
    EXPORT_NONE,
    EXPORT_NPZ,
    EXPORT_SAFETENSORS,
    EXPORT_BUNDLE,
    EXPORT_RECORDS, /* our own, which are no archive */
};

/* By the end of the name: .npz, .safetensors, .index for TensorFlow's checkpoints (with the data in
 * files beside it), .ckpt. */
enum export_form export_form_of(const char *path);
bool is_archive(const char *path); /* of another program, by its name */

/* ERR_USAGE: the name tells no form. */
int export_form_find(const char *path, enum export_form *form, struct error *err);

/* Reads what is_archive. */
int archive_read(const char *path, struct archive *archive, struct error *err);

/* NumPy's .npz, not compressed. ERR_DATA for types that .npy lacks. The file is not flushed.
 */
int npz_write(FILE *file, const struct archive_input *input, struct error *err);

/* Hugging Face's safetensors. ERR_DATA for strings, which the format lacks. */
int safetensors_write(FILE *file, const struct archive_input *input, struct error *err);
int safetensors_read(const char *path, struct archive *archive, struct error *err);
int safetensors_read_memory(const void *data, size_t n, const char *name, struct archive *archive,
                            struct error *err);

#endif
