/* SPDX-License-Identifier: Apache-2.0
 *
 * The scalars of a shard's checkpoint, which appear in the first worker's records after it is made.
 * Private to ps/; for the slow queue.
 */
#ifndef TF_PS_SHARD_MEASURE_H
#define TF_PS_SHARD_MEASURE_H

#include "checkpoint/store/run.h"
#include "ps/tail.h"

struct shard;
struct shard_save_request;

struct shard_measure {
    struct tail fetches; /* of the first worker; no path: there are none */
    char *folder;        /* of the checkpoint that still lacks its scalars; NULL: none does */
    int64_t step;
    struct ckpt_run run;
    bool is_looking;
};

/* Called before a checkpoint's snapshot, while the clock is paused: starts to collect the scalars
 * of that version. The previous checkpoint gets those found so far. */
void shard_measure_want(struct shard *shard, const struct shard_save_request *wanted);
const scalar_vec *shard_measured(struct shard *shard); /* those found so far */
/* Adds the other scalars to the saved checkpoint once the worker has written them. */
void shard_measure_later(struct shard *shard, const char *folder, int64_t step,
                         const struct ckpt_run *run);
void shard_measure_forget(struct shard *shard);

#endif
