/* SPDX-License-Identifier: Apache-2.0
 *
 * Saving: one transaction makes a checkpoint visible, or leaves no trace.
 */
#ifndef TF_CHECKPOINT_SAVE_H
#define TF_CHECKPOINT_SAVE_H

#include "checkpoint/store/store.h"

struct checkpoint;

/* What happens to an existing checkpoint of the same step. One with bitwise equal tensors stays as
 * it is, and counts as saved. A damaged one is replaced. */
enum save_over {
    SAVE_OVER_OWN,  /* one of the same run is replaced, with the new scalars; others are refused */
    SAVE_OVER_NONE, /* all others are refused */
    SAVE_OVER_ANY,
};

struct save_request {
    int64_t step;
    struct ckpt_run run;
    enum save_over over;
    int64_t time;                          /* microseconds since 1970; 0: now */
    const char *producer;                  /* tool, version and arguments */
    const struct variable_record *tensors; /* without steps; values in host memory, row-major, that
                                            * do not change during the call */
    size_t n_tensors;
    const struct manifest_scalar *scalars;
    size_t n_scalars;
    const struct manifest_blob *blobs;
    size_t n_blobs;
    const char *const *shards; /* names, for the coordinating manifest, which has no tensors itself.
                                * Each has already saved this step. */
    size_t n_shards;
    bool is_part; /* part of a checkpoint of several shards: one of the same step stays until
                   * store_prune, as it may be the listed one */
    double bytes_per_second;  /* 0: no limit, */
    const atomic_bool *hurry; /* no limit once true, as somebody waits; NULL: nobody does */
    int threads;              /* for digests; 0: one per core */

    /* Gives chunk `chunk` of a tensor whose value has no data (numbers only), and its digest, so
     * that not all values have to be in memory. It is called by one thread, in order, at most twice
     * for a chunk. NULL: all have data. */
    int (*read)(void *source, size_t tensor, uint64_t chunk, void *data, struct digest *digest,
                struct error *err);
    void *source;

    /* Called between chunks with the bytes processed so far. Returning false ends the save with
     * ERR_CANCELLED, without a trace. NULL: nobody is told. */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
};

/* `saved` (NULL: not wanted) gets the manifest, but points into the request; release it. Its
 * sequence number is 0 if the existing checkpoint stayed. The store must be open for writing.
 * ERR_IO: the disk is full; ERR_CONFIG naming the run: a checkpoint of this step may not be
 * replaced. Then nothing was changed. */
int store_save(struct store *store, const struct save_request *request, struct ckpt_manifest *saved,
               struct error *err);

/* Checks that store_save, replacing only the same run's checkpoints, would accept that step and
 * run. For callers that must save shards first; errors are those of store_save. */
int store_may_save(struct store *store, int64_t step, const struct ckpt_run *run,
                   struct error *err);

/* Checks, by the digests of a checkpoint, whether it may be saved to the store. ERR_CONFIG: there
 * is another of its step; *stays: an equal one. */
int save_check_copy(struct store *store, const struct checkpoint *from, bool *stays,
                    struct error *err);

/* A run that starts afresh must have its own store: ERR_CONFIG naming another run with checkpoints
 * there. */
int store_check_alone(struct store *store, const struct ckpt_run *run, struct error *err);

/* ---- which job saves ----
 *
 * Two jobs may continue one run: a job that was thought dead, and the job that resumed from its
 * checkpoints. A job that resumes first takes the store over, which begins a new generation; jobs
 * of older generations can no longer save. */

/* Opens the store to write, and begins a new generation. Call it before looking for a checkpoint,
 * so that all acknowledged saves are found. A job that restarts its processes keeps a file of its
 * claims (`claims`, created if missing; NULL: none): it cannot reclaim a store that another job has
 * taken over since, ERR_DENIED. Other errors as of store_open. */
int store_take_over(const char *path, const struct store_options *options, const char *claims,
                    int64_t *generation, struct error *err);
/* Reads the store's current generation. */
int store_generation(struct store *store, int64_t *generation, struct error *err);

/* In whose name a job saves to its store. */
struct store_writer {
    struct ckpt_run run;
    bool goes_on;       /* the store has checkpoints of the run; else it may have no others */
    int64_t generation; /* of the store; 0: not known yet, the first check reads it */
};

/* Called before a save, with the store open. ERR_DENIED naming who has taken the store over since;
 * ERR_CONFIG as of store_check_alone. */
int store_check_writer(struct store *store, struct store_writer *writer, struct error *err);

/* As store_save, but opens the store for this, with `options`. */
int store_save_at(const char *path, const struct store_options *options,
                  const struct save_request *request, struct error *err);

#endif
