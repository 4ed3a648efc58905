/* SPDX-License-Identifier: Apache-2.0
 *
 * The best checkpoint of a run, STORE@best: a program that saves by a metric (tf-exec --save-best)
 * records in each checkpoint the metric and its value. Also checkpoints that people have named,
 * STORE@TAG: a tag protects its checkpoint from every rule that forgets.
 */
#ifndef TF_CHECKPOINT_BEST_H
#define TF_CHECKPOINT_BEST_H

#include "checkpoint/store/store.h"

#define BEST_BLOB "best" /* "loss:min", "accuracy:max" */

/* Takes the metric of the newest checkpoint that has one, and returns the best by it in that run;
 * of equal ones, the newest. NULL: there is none. The manifests are in the order of saving. */
const struct ckpt_manifest *best_of(const manifest_vec *manifests);

/* Adds these scalars to the checkpoint of that step and run. ERR_NOINPUT: it does not exist. The
 * store must be open for writing. */
int store_set_scalars(struct store *store, int64_t step, const struct ckpt_run *run,
                      const struct manifest_scalar *scalars, size_t n, struct error *err);

/* Returns whether the text can be a tag: not a number, not "best". */
bool ckpt_tag_fits(const char *text);

/* Returns the next tag of a checkpoint, from *i on; NULL: no more. */
const char *ckpt_manifest_next_tag(const struct ckpt_manifest *manifest, size_t *i);

/* Returns the checkpoint that STORE@NAME means: "best", or a tag. NULL: none. */
const struct ckpt_manifest *ckpt_manifest_named(const manifest_vec *manifests, const char *name);

/* Finds its step. ERR_NOINPUT: no checkpoint has the tag, or none was saved by a metric. */
int store_named(struct store *store, const char *name, int64_t *step, struct error *err);

/* Adds the tags of another checkpoint. */
void ckpt_manifest_add_tags(struct ckpt_manifest *manifest, const struct ckpt_manifest *from);

/* Moves the tag to the checkpoint of that step; STORE_NO_STEP: only removes it. The store must be
 * open for writing. */
int store_tag(struct store *store, int64_t step, const char *tag, struct error *err);

#endif
