/* SPDX-License-Identifier: Apache-2.0
 *
 * The manifest of one checkpoint of a job: the last file of its folder to appear, which makes the
 * others a checkpoint. Text, to be read with cat:
 *
 *     checkpoint 1
 *     step 300
 *     saved 2026-03-02T14:05:12Z
 *     file ps-0.ckpt 38440 2b0c3f6a8d1e4f5792b0c3f6a8d1e4f5
 *     file ps-1.ckpt 76872 79ad0f1b2c3d4e5f60718293a4b5c6d7
 *     pushes worker:0 300
 *     sum c8a1f0e2d4b69753
 *
 * A file's last word is the XXH3-128 of its bytes, `sum` the XXH3-64 of the lines above it: a
 * manifest that was cut or edited is none. `pushes` counts what a worker had been told is counted.
 */
#ifndef TF_PS_MANIFEST_H
#define TF_PS_MANIFEST_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"

#include <stdint.h>

#define MANIFEST_DIGEST_CHARS 32

struct manifest_file {
    const char *name; /* "ps-0.ckpt" */
    int64_t bytes;
    char digest[MANIFEST_DIGEST_CHARS + 1];
};

struct manifest_pushes {
    const char *worker; /* "worker:0" */
    int64_t count;
};

struct manifest {
    int64_t step;
    const char *saved; /* UTC */
    VEC(struct manifest_file) files;
    VEC(struct manifest_pushes) pushes;
    struct arena arena; /* of the texts */
};

/* Copies the name. */
void manifest_add_file(struct manifest *manifest, const char *name, int64_t bytes,
                       const char *digest);
void manifest_add_pushes(struct manifest *manifest, const char *worker, int64_t count);
void manifest_release(struct manifest *manifest);

/* Into a folder, by a temporary name, synchronised. `saved` is set to now. */
int manifest_write(struct manifest *manifest, const char *folder, struct error *err);

/* ERR_NOINPUT when the folder has none, ERR_DATA when it is damaged. The manifest is
 * zero-initialised before, and released by the caller in any case. */
int manifest_read(struct manifest *manifest, const char *folder, struct error *err);

/* Whether each file is there, as long as it should be, and of the digest: ERR_DATA naming the first
 * that is not. */
int manifest_verify(const struct manifest *manifest, const char *folder, struct error *err);

/* Length and digest of a file. */
int manifest_digest(const char *path, int64_t *bytes, char digest[MANIFEST_DIGEST_CHARS + 1],
                    struct error *err);

#endif
