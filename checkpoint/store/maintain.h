/* SPDX-License-Identifier: Apache-2.0
 *
 * What keeps a store in order: forgetting checkpoints, giving back what only they had, copying to
 * another store.
 */
#ifndef TF_CHECKPOINT_MAINTAIN_H
#define TF_CHECKPOINT_MAINTAIN_H

#include "checkpoint/store/checkpoint.h"

struct maintain_watch { /* who wants to know how far it is, and may stop it between two commits */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
};

/* Removes the manifests of these steps in one transaction, also damaged ones; the chunks stay until
 * store_prune. Steps that are not there are passed over. The store is open for writing. */
int store_forget(struct store *store, const int64_t *steps, size_t n, struct error *err);

/* Forgets all but the newest n of a run and its best (checkpoint/store/best.h), and no damaged one:
 * whoever keeps the store decides. */
int store_forget_old(struct store *store, const struct ckpt_run *run, size_t n, struct error *err);

struct prune_report {
    uint64_t chunks, bytes;           /* what was removed */
    uint64_t kept_chunks, kept_bytes; /* what is referred to */
};

/* Removes the chunks that no manifest refers to, and from the environments of shards also the
 * manifests that the coordinating ones no longer list (not those that are newer: a job may be
 * saving). A damaged manifest keeps every chunk whose digest can be found in it. Killed or stopped,
 * it leaves a sound store. `dry_run` only counts. */
int store_prune(struct store *store, bool dry_run, const struct maintain_watch *watch,
                struct prune_report *report, struct error *err);

/* After a save: forgets what is old, and prunes. n 0: all are kept. */
int store_keep_newest(struct store *store, const struct ckpt_run *run, size_t n, struct error *err);

/* Saves the checkpoint, every chunk of it checked, into another store, with its run, its time and
 * all that belongs to it; of a job with several shards it becomes one. A checkpoint that is there
 * already with the same values stays: `saved` (NULL: not wanted) has the sequence number 0 then.
 * ERR_CONFIG, and nothing is read, when there is another one of its step. */
int checkpoint_copy(struct checkpoint *from, struct store *to, const struct maintain_watch *watch,
                    struct ckpt_manifest *saved, struct error *err);

/* The same in the place of whatever is there of its step. */
int checkpoint_copy_over(struct checkpoint *from, struct store *to,
                         const struct maintain_watch *watch, struct ckpt_manifest *saved,
                         struct error *err);

#endif
