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

void archive_release(struct archive *archive);

/* NumPy's .npz, not compressed. ERR_DATA for types that .npy lacks. The file is not flushed.
 */
int npz_write(FILE *file, const struct archive_input *input, struct error *err);

/* Hugging Face's safetensors. ERR_DATA for strings, which the format lacks. */
int safetensors_write(FILE *file, const struct archive_input *input, struct error *err);
int safetensors_read(const char *path, struct archive *archive, struct error *err);
int safetensors_read_memory(const void *data, size_t n, const char *name, struct archive *archive,
                            struct error *err);

#endif
