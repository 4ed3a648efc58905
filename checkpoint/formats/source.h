/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors by the names that tools take: STORE (its newest complete checkpoint), STORE@STEP, a file
 * of `tensor` records (x.ckpt, what tf-exec --save FILE writes), or one of another program.
 */
#ifndef TF_CHECKPOINT_SOURCE_H
#define TF_CHECKPOINT_SOURCE_H

#include "checkpoint/store/checkpoint.h"
#include "exec/state/saved_parts.h"
#include "wire/record.h"

struct source_tensor {
    struct manifest_tensor saved; /* its chunks are of no use here */
    int entry;                    /* in the checkpoint; -1: it comes from a file, or was joined */
    struct tensor value;          /* from a file, which is read whole */
    const struct source_tensor *slices; /* joined slices, in the order of their rows */
    size_t n_slices;
};

struct source {
    const char *name;              /* "ckpt@460", "digits.ckpt" */
    int64_t step;                  /* -1: a file that does not tell it */
    struct store *store;           /* NULL: a file */
    struct checkpoint *checkpoint; /* NULL: a file */
    struct error passed_over;      /* why a newer checkpoint was skipped; code 0: none was */
    VEC(struct source_tensor) tensors;
    struct arena arena;
};

/* Splits "STORE@STEP", "STORE@best" (CHECKPOINT_BEST) and "STORE@TAG" of an existing store. Without
 * a step, and for a tag, *step is CHECKPOINT_NEWEST. The text is copied into the arena. Returns the
 * text after the @; NULL: the whole text names a store or a file. */
const char *source_which(const char *text, struct arena *arena, const char **path, int64_t *step);

/* As source_which; if the store exists, "best" and tags are resolved to *step. ERR_NOINPUT: no
 * checkpoint has that name. */
int source_split(const char *text, struct arena *arena, const char **path, int64_t *step,
                 struct error *err);

/* ERR_NOINPUT: it does not exist; ERR_DATA: it is damaged. */
int source_open(const char *name, struct source *source, struct error *err);
void source_close(struct source *source);

/* As source_open, for a store that may be damaged in any way: reads at once whatever is intact of
 * the checkpoint, by its digests. `lost` gets a line naming each tensor that is lost. ERR_DATA: not
 * even a manifest is left. */
int source_salvage(const char *name, struct source *source, size_t *n_lost,
                   void (*lost)(void *context, const char *line), void *context, struct error *err);

/* Every chunk of a store is checked, and an error names tensor and chunk. The caller releases. */
int source_read(struct source *source, size_t i, struct tensor *value, struct error *err);
int source_read_tensor(struct source *source, const struct source_tensor *tensor,
                       struct tensor *value, struct error *err);

/* Returns whether a tensor has that name: "W", or "scratch:W" if not in the default container. */
bool source_is_named(const char *container, const char *tensor, const char *name);
/* -1: none. */
int source_find(const struct source *source, const char *name);
/* The name of the tensor in other formats, of the form above. In the source's arena. */
const char *source_outer_name(struct source *source, size_t i);

/* ---- the model as its user sees it (source_whole.c) ---- */

/* Joins the slices of each partitioned variable into one tensor under the variable's name. ERR_DATA
 * naming the first variable with missing elements, or with slices of different wholes: such
 * variables stay slices; all others are joined. */
int source_join_slices(struct source *source, struct error *err);

/* Removes what is not a variable: the state of clocks and aggregators. */
void source_drop_resources(struct source *source);

/* Removes strings, which numeric formats cannot hold; TensorFlow 2 keeps one beside its variables.
 * `left_out` gets a line naming each. */
void source_drop_texts(struct source *source, void (*left_out)(void *context, const char *line),
                       void *context);

/* As source_find; joins slices if nothing else has the name. -1 with ERR_NOINPUT, or with ERR_DATA
 * if its slices cannot be joined. */
int source_find_whole(struct source *source, const char *name, struct error *err);

/* Does source_read for joined tensors. Also ERR_DATA if overlapping slices have different bits. */
int source_read_slices(struct source *source, const struct source_tensor *whole,
                       struct tensor *value, struct error *err);

/* Tensors of a source in the form that restoring expects; without an index. */
struct source_parts {
    struct saved_parts parts;
    struct source *source;
    const struct source_tensor *tensors;
};

struct source_parts source_as_parts(struct source *source, const struct source_tensor *tensors,
                                    size_t n);

#endif
