/* SPDX-License-Identifier: Apache-2.0
 *
 * The best checkpoint of a run, STORE@best: whoever saves by a metric (tf-exec --save-best) says in
 * each of its checkpoints which it is, and what the variables are worth by it. And those that
 * people have named, STORE@TAG: a tag keeps its checkpoint from every rule that forgets.
 */
#ifndef TF_CHECKPOINT_BEST_H
#define TF_CHECKPOINT_BEST_H

#include "checkpoint/store/store.h"

#define BEST_BLOB "best" /* "loss:min", "accuracy:max" */

/* The one that is best by the metric of the newest that has one, among those of its run; of two
 * that are as good, the newer. NULL: none has both. The manifests are in the order of saving. */
const struct ckpt_manifest *best_of(const manifest_vec *manifests);

/* Gives the checkpoint of that step and run these scalars, besides those that it has. ERR_NOINPUT
 * when it is not there. The store is open for writing. */
int store_set_scalars(struct store *store, int64_t step, const struct ckpt_run *run,
                      const struct manifest_scalar *scalars, size_t n, struct error *err);

/* Texts that can be one: no numbers, not "best". */
bool ckpt_tag_fits(const char *text);

/* The next tag of a checkpoint, from *i on; NULL: no more. */
const char *ckpt_manifest_next_tag(const struct ckpt_manifest *manifest, size_t *i);

/* The one that is meant by STORE@NAME: "best", or a tag. NULL: none. */
const struct ckpt_manifest *ckpt_manifest_named(const manifest_vec *manifests, const char *name);

/* *step: of that one. ERR_NOINPUT when no checkpoint has the tag, or none was saved by a metric. */
int store_named(struct store *store, const char *name, int64_t *step, struct error *err);

/* Gives a checkpoint the tags of another, too. */
void ckpt_manifest_add_tags(struct ckpt_manifest *manifest, const struct ckpt_manifest *from);

/* Gives the tag to the checkpoint of that step, and takes it from the one that has it;
 * STORE_NO_STEP: that only. The store is open for writing. */
int store_tag(struct store *store, int64_t step, const char *tag, struct error *err);

#endif
