/* SPDX-License-Identifier: Apache-2.0
 *
 * The checkpoint that a shard's values come from. All shards of a job must resume from the same
 * one. So the first shard decides, and names it by its digest; the others find exactly that one, or
 * end. Each decision has a unique number: shards with different numbers were restored apart, and
 * can neither train nor be saved together.
 */
#ifndef TF_PS_ORIGIN_H
#define TF_PS_ORIGIN_H

#include "checkpoint/store/checkpoint.h"
#include "ps/client.h"

struct shard_origin {
    uint64_t decision;      /* 0: none, as in a job that started afresh */
    int64_t step, sequence; /* step -1: there was no checkpoint */
    struct ckpt_run run;
    struct digest manifest;
    int64_t generation; /* of the store, as which the job saves */
};

/* Makes a new decision, without a checkpoint yet. ERR_OS: the system has no random bits. */
int origin_decide(struct shard_origin *origin, struct error *err);
/* Sets the checkpoint that was decided on. */
void origin_set(struct shard_origin *origin, const struct ckpt_manifest *manifest);
/* ERR_RETRY: the checkpoint found is not the one that was decided on. */
int origin_check(const struct shard_origin *origin, const struct checkpoint *found,
                 struct error *err);

/* For a shard, `task`, that resumes: asks the shard that `client` is linked to, which decides.
 * ERR_RETRY: that shard has trained on meanwhile. */
int origin_ask(struct client *client, const char *task, struct shard_origin *origin,
               struct error *err);

#endif
