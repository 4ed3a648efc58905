/* SPDX-License-Identifier: Apache-2.0
 *
 * How a checkpoint comes to be, whoever saves: a process, the first of several workers, the shard
 * that leads, tf-ckpt for a running job. Whoever has values marks them between two steps
 * (checkpoint/variables/cut.h). What follows has one order, with the store open: the store is still
 * the job's; what others have marked is collected; the manifest makes the checkpoint visible; what
 * is old goes.
 */
#ifndef TF_CHECKPOINT_COMMIT_H
#define TF_CHECKPOINT_COMMIT_H

#include "checkpoint/store/save.h"

/* How a process that saves opens its store: it waits, as a nightly job may be at work there. */
static inline struct store_options commit_options(const char *owner)
{
    return (struct store_options){.write = true, .lock_wait = 600, .owner = owner};
}

struct commit {
    struct save_request request;
    struct store_writer *writer; /* goes_on, out: it was saved. NULL: the store is no job's own */
    size_t keep;                 /* so many checkpoints of the run, the newest; 0: all */

    /* Has the others write their parts, and completes the request with what is known only then.
     * NULL: all is in the request. */
    int (*collect)(void *context, struct store *store, struct save_request *request,
                   struct error *err);
    void *context;

    bool is_succeeded; /* out: by another job, which has taken the store over */
    struct error left; /* out: why older ones are still there */
};

/* The store is open for writing. Errors as of store_check_writer, collect and store_save. */
int commit_checkpoint(struct store *store, struct commit *commit, struct error *err);

#endif
