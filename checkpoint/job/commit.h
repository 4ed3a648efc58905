/* SPDX-License-Identifier: Apache-2.0
 *
 * How a checkpoint is made, whoever saves: a process, the first of several workers, the shard that
 * leads, or tf-ckpt for a running job. Each owner of values takes a snapshot between two steps
 * (checkpoint/variables/cut.h). The rest happens in this order, with the store open: check that the
 * store still belongs to the job; collect the snapshots of others; write the manifest, which makes
 * the checkpoint visible; forget old checkpoints.
 */
#ifndef TF_CHECKPOINT_COMMIT_H
#define TF_CHECKPOINT_COMMIT_H

#include "checkpoint/store/save.h"

/* How a saving process opens its store: it waits, as a nightly job may be using it. */
static inline struct store_options commit_options(const char *owner)
{
    return (struct store_options){.write = true, .lock_wait = 600, .owner = owner};
}

struct commit {
    struct save_request request;
    struct store_writer *writer; /* sets goes_on once saved. NULL: no job owns the store */
    size_t keep;                 /* number of the run's newest checkpoints to keep; 0: all */

    /* Makes the others write their parts, and completes the request with what they report. NULL:
     * the request is complete. */
    int (*collect)(void *context, struct store *store, struct save_request *request,
                   struct error *err);
    void *context;

    bool is_succeeded; /* out: another job has taken the store over */
    struct error left; /* out: why older checkpoints were not removed */
};

/* The store is open for writing. Errors are those of store_check_writer, collect, store_save. */
int commit_checkpoint(struct store *store, struct commit *commit, struct error *err);

#endif
