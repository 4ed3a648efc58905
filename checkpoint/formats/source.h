/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors by the names that tools take: STORE (its newest complete checkpoint), STORE@STEP, or a
 * file of `tensor` records (x.ckpt, what tf-exec --save FILE writes).
 */
#ifndef TF_CHECKPOINT_SOURCE_H
#define TF_CHECKPOINT_SOURCE_H

#include "checkpoint/store/checkpoint.h"
#include "exec/state/saved_parts.h"
#include "wire/record.h"

struct source_tensor {
    const char *container, *name;
    enum dtype type;
    struct shape shape;
    uint64_t bytes, updates;
    struct variable_slice slice;        /* if it is one */
    int entry;                          /* of the checkpoint; -1: a file, or slices */
    struct tensor value;                /* of a file: it was read whole */
    const struct source_tensor *slices; /* that were joined, in the order of their rows */
    size_t n_slices;
};

struct source {
    const char *name; /* "ckpt@460", "digits.ckpt" */
    int64_t step;
    struct store *store;           /* NULL: a file */
    struct checkpoint *checkpoint; /* NULL: a file */
    struct error passed_over;      /* why a newer one was not taken; code 0: there is none */
    VEC(struct source_tensor) tensors;
    struct arena arena;
};

/* Splits "STORE@STEP", "STORE@best" (CHECKPOINT_BEST) and "STORE@TAG" of a store that is there.
 * *step is CHECKPOINT_NEWEST without one, and for a tag. The text is copied into the arena. Returns
 * what stands behind the @, NULL: the text is a store's or a file's whole name. */
const char *source_which(const char *text, struct arena *arena, const char **path, int64_t *step);

/* As source_which; where the store is there, *step is what it says of "best" and of tags.
 * ERR_NOINPUT when no checkpoint is called so. */
int source_split(const char *text, struct arena *arena, const char **path, int64_t *step,
                 struct error *err);

/* ERR_NOINPUT when there is no such thing, ERR_DATA when it is damaged. */
int source_open(const char *name, struct source *source, struct error *err);
void source_close(struct source *source);

/* As source_open, of a store that may be damaged in any way: what is intact of the checkpoint is
 * read at once, by its digests. `lost` is called for each tensor that is not, with a line that
 * names it. ERR_DATA when not even a manifest is left. */
int source_salvage(const char *name, struct source *source, size_t *n_lost,
                   void (*lost)(void *context, const char *line), void *context, struct error *err);

/* Every chunk of a store is checked, and an error names tensor and chunk. The caller releases. */
int source_read(struct source *source, size_t i, struct tensor *value, struct error *err);
int source_read_tensor(struct source *source, const struct source_tensor *tensor,
                       struct tensor *value, struct error *err);

/* "W", or "scratch:W" in another container than the default one: whether a tensor is called so. */
bool source_is_named(const char *container, const char *tensor, const char *name);
/* -1: none. */
int source_find(const struct source *source, const char *name);
/* The name under which it leaves for other formats: as above. In the source's arena. */
const char *source_outer_name(struct source *source, size_t i);

/* ---- as a user knows the model (source_whole.c) ---- */

/* Variables that were cut into slices become one tensor each, under their names, if all of their
 * elements are there. ERR_DATA naming the first of which they are not, or whose slices are not of
 * the same whole: those stay slices, and all others are joined. */
int source_join_slices(struct source *source, struct error *err);

/* Takes out what is no variable: parts of clocks and aggregators. */
void source_drop_resources(struct source *source);

/* Takes out texts, which formats of numbers do not have, as TensorFlow 2 keeps one beside its
 * variables. `left_out` is called for each with a line that names it. */
void source_drop_texts(struct source *source, void (*left_out)(void *context, const char *line),
                       void *context);

/* As source_find; slices are joined if nothing else has the name. -1: ERR_NOINPUT; ERR_DATA when it
 * is there in slices that cannot be joined. */
int source_find_whole(struct source *source, const char *name, struct error *err);

/* Does the work of source_read for tensors that were joined. ERR_DATA, too, when slices overlap and
 * have different bits there. */
int source_read_slices(struct source *source, const struct source_tensor *whole,
                       struct tensor *value, struct error *err);

/* Returns a tensor in the form that restoring takes. */
struct saved_part source_part(const struct source_tensor *tensor);

#endif
