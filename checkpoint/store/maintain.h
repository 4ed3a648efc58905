/* SPDX-License-Identifier: Apache-2.0
 *
 * Maintenance of a store: forgetting checkpoints, freeing chunks that only they used, copying to
 * another store.
 */
#ifndef TF_CHECKPOINT_MAINTAIN_H
#define TF_CHECKPOINT_MAINTAIN_H

#include "checkpoint/store/checkpoint.h"

struct maintain_watch { /* observes progress, and may stop the work between two commits */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
};

/* Removes the manifests of these steps, also damaged ones, in one transaction; their chunks stay
 * until store_prune. Missing steps are skipped. The store must be open for writing. */
int store_forget(struct store *store, const int64_t *steps, size_t n, struct error *err);

/* Forgets all checkpoints of a run but its newest n and its best (checkpoint/store/best.h). Keeps
 * damaged ones, which are for the store's owner to decide on. */
int store_forget_old(struct store *store, const struct ckpt_run *run, size_t n, struct error *err);

struct prune_report {
    uint64_t chunks, bytes;           /* removed */
    uint64_t kept_chunks, kept_bytes; /* still referred to */
};

/* Removes the chunks that no manifest refers to, and from shards' environments also the manifests
 * that the coordinating ones no longer list (but not newer ones: a job may be saving). A damaged
 * manifest keeps every chunk whose digest can be found in it. If killed or stopped, it leaves a
 * sound store. `dry_run` only counts. */
int store_prune(struct store *store, bool dry_run, const struct maintain_watch *watch,
                struct prune_report *report, struct error *err);

/* Called after a save: forgets old checkpoints, and prunes. n 0: all are kept. */
int store_keep_newest(struct store *store, const struct ckpt_run *run, size_t n, struct error *err);

/* Copies the checkpoint, checking every chunk, into another store, with its run, its time and all
 * that belongs to it; shards are merged. An existing checkpoint with the same values stays: `saved`
 * (NULL: not wanted) then has sequence number 0. ERR_CONFIG, before anything is read: there is
 * another checkpoint of its step. `over`: any checkpoint of its step is replaced. */
int checkpoint_copy(struct checkpoint *from, struct store *to, bool over,
                    const struct maintain_watch *watch, struct ckpt_manifest *saved,
                    struct error *err);

#endif
