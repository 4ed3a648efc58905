/* SPDX-License-Identifier: Apache-2.0
 *
 * Saving: a checkpoint becomes visible by one transaction, or leaves no trace.
 */
#ifndef TF_CHECKPOINT_SAVE_H
#define TF_CHECKPOINT_SAVE_H

#include "checkpoint/store/store.h"

struct save_tensor {
    const char *container, *name;
    uint64_t updates;
    struct tensor value; /* host memory, row-major; must not change during the call */
    struct variable_slice slice;
};

/* When there is a checkpoint of the same step already. One with the same tensors, bit for bit,
 * stays as it is: to save it is to have done so. One that is damaged is replaced. */
enum save_over {
    SAVE_OVER_OWN,  /* one of the same run is replaced, and has the new scalars; others are refused
                     */
    SAVE_OVER_NONE, /* all others are refused */
    SAVE_OVER_ANY,
};

struct save_request {
    int64_t step;
    struct ckpt_run run;
    enum save_over over;
    int64_t time;         /* microseconds since 1970; 0: now */
    const char *producer; /* tool, version and arguments */
    const struct save_tensor *tensors;
    size_t n_tensors;
    const struct manifest_scalar *scalars;
    size_t n_scalars;
    const struct manifest_blob *blobs;
    size_t n_blobs;
    const char *const *shards; /* names: what coordinates them has no tensors. Each has saved this
                                * step already. */
    size_t n_shards;
    bool is_part;             /* of a checkpoint of several shards: one of the same step stays until
                               * store_prune, as it may be what is listed */
    double bytes_per_second;  /* 0: as fast as it goes, */
    const atomic_bool *hurry; /* and from when this is true, as somebody waits; NULL: nobody does */
    int threads;              /* for digests; 0: as many as cores */

    /* Called between chunks, with the bytes that were seen to; returning false ends the call with
     * ERR_CANCELLED, and without a trace. NULL: nobody wants to know. */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
};

/* `saved` (NULL: not wanted) gets what the manifest says, but points into the request; release it.
 * Its sequence number is 0 when what is there has stayed. The store is open for writing. ERR_IO
 * when the disk is full, ERR_CONFIG naming the run when a checkpoint of this step is there that may
 * not be replaced: nothing was changed then. */
int store_save(struct store *store, const struct save_request *request, struct ckpt_manifest *saved,
               struct error *err);

/* Returns whether a checkpoint of that step and run may be saved there over what is of the same run
 * alone: the error of store_save, for who has to save shards before it. */
int store_may_save(struct store *store, int64_t step, const struct ckpt_run *run,
                   struct error *err);

/* A run that begins anew has a store of its own: ERR_CONFIG naming the run of which there are
 * checkpoints. */
int store_check_alone(struct store *store, const struct ckpt_run *run, struct error *err);

/* ---- which job saves ----
 *
 * Two jobs may go on with one run: one that was thought dead, and one that has resumed from what it
 * had saved. Whoever resumes takes the store over first: from then on it is of another generation,
 * and who is of an older one saves nothing more. */

/* Opens the store to write, and begins a new generation. Before what is there is looked for: what
 * is acknowledged by then is what is found. A job that starts its processes again has a file of
 * what it claimed before (`claims`, made if it is missing; NULL: none): what another one has taken
 * over since it does not get back, ERR_DENIED. Other errors as of store_open. */
int store_take_over(const char *path, const struct store_options *options, const char *claims,
                    int64_t *generation, struct error *err);
/* Reads the generation that the store is of now. */
int store_generation(struct store *store, int64_t *generation, struct error *err);

/* In whose name a job saves to its store. */
struct store_writer {
    struct ckpt_run run;
    bool goes_on;       /* the store has checkpoints of the run; else it may have no other's */
    int64_t generation; /* that the store is of; 0: not known yet, the first check finds it */
};

/* Before something is saved, with the store open: ERR_DENIED naming who has taken it over since,
 * ERR_CONFIG as of store_check_alone. */
int store_check_writer(struct store *store, struct store_writer *writer, struct error *err);

/* As store_save, with a store that is opened for this, as `options` say. */
int store_save_at(const char *path, const struct store_options *options,
                  const struct save_request *request, struct error *err);

#endif
