/* SPDX-License-Identifier: Apache-2.0
 *
 * What one checkpoint consists of. In the store a manifest is one value: a magic number, the
 * SHA-256 of the rest, and a msgpack map.
 *
 * In a job with several shards, each shard has a manifest of its tensors in its own environment,
 * and the coordinating manifest lists the shards with those manifests' digests. A checkpoint is
 * complete if all of them exist.
 */
#ifndef TF_CHECKPOINT_MANIFEST_H
#define TF_CHECKPOINT_MANIFEST_H

#include "base/arena.h"
#include "base/error.h"
#include "base/name_index.h"
#include "base/str.h"
#include "base/vec.h"
#include "checkpoint/store/digest.h"
#include "checkpoint/store/run.h"
#include "exec/state/saved_parts.h"
#include "exec/state/variable.h"
#include "tensor/tensor.h"
#include "wire/record.h"

struct manifest_tensor {
    const char *container, *name;
    enum dtype type;
    struct shape shape;
    uint64_t bytes;              /* for STRING: offsets and bytes */
    uint64_t updates;            /* writes since the variable was made */
    struct variable_slice slice; /* set if the tensor is a slice */
    const struct digest *chunks; /* chunk_count(bytes) */
};

struct manifest_scalar { /* a fetched value: "loss", 0.0187 */
    const char *name;
    double value;
};

struct manifest_blob { /* choices, iterator state, state of an aggregation, ... */
    const char *name;
    const void *data;
    size_t n;
};

struct manifest_shard {
    const char *name; /* "ps-0" */
    struct digest manifest;
};

struct ckpt_manifest {
    int64_t step;
    int64_t sequence; /* 1, 2, ... in the order of saving, within an environment */
    int64_t time;     /* microseconds since 1970 */
    const char *producer;
    struct ckpt_run run;
    uint64_t n_tensors;        /* variables, those of the shards among them */
    uint64_t bytes, new_bytes; /* of the tensors; new to the store */
    VEC(struct manifest_tensor) tensors;
    VEC(struct manifest_scalar) scalars;
    VEC(struct manifest_blob) blobs;
    VEC(struct manifest_shard) shards;
    struct digest digest;      /* of the encoded value; set by encoding and decoding */
    struct arena arena;        /* holds what the above points to, if decoded */
    struct name_index by_name; /* tensors; built when one is first looked for */
};

void ckpt_manifest_release(struct ckpt_manifest *manifest);

/* Appends the encoded value. */
void ckpt_manifest_encode(struct ckpt_manifest *manifest, struct str *out);

/* ERR_DATA: it is damaged, malformed or of another version. `manifest` is zeroed. */
int ckpt_manifest_decode(const void *value, size_t n, struct ckpt_manifest *manifest,
                         struct error *err);

/* Returns whether the name of a tensor, a container, a scalar, ... is short enough and
 * printable. */
bool ckpt_name_fits(const char *name);

int ckpt_manifest_by_sequence(const void *a, const void *b); /* the order, for qsort */

/* Checks all names in the manifest. ERR_DATA naming the first bad one. */
int ckpt_manifest_check_names(const struct ckpt_manifest *manifest, struct error *err);

/* NULL: none has that name. No tensors may be added after the first lookup. */
const struct manifest_tensor *ckpt_manifest_find(struct ckpt_manifest *manifest,
                                                 const char *container, const char *name);
const struct manifest_blob *ckpt_manifest_find_blob(const struct ckpt_manifest *manifest,
                                                    const char *name);
bool ckpt_manifest_find_scalar(const struct ckpt_manifest *manifest, const char *name,
                               double *value);

/* Allocates memory for the value, and checks what was read into it, as anybody may have written the
 * manifest: ERR_DATA. The errors do not name the tensor. */
int manifest_tensor_alloc(const struct manifest_tensor *tensor, struct tensor *value,
                          struct error *err);
int manifest_tensor_check(const struct manifest_tensor *tensor, const struct tensor *value,
                          struct error *err);
/* Releases memory that was not filled with a valid value. */
void manifest_tensor_discard(struct tensor *value);

/* Return the tensor as a part, or as a record without a value, and the tensor, without chunks, of a
 * record; what is returned borrows from the argument. */
struct saved_part manifest_tensor_part(const struct manifest_tensor *tensor);
struct variable_record manifest_tensor_record(const struct manifest_tensor *tensor);
struct manifest_tensor manifest_tensor_of(const struct variable_record *record);

#endif
