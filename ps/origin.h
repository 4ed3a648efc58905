/* SPDX-License-Identifier: Apache-2.0
 *
 * Which checkpoint the values of a shard come from. The shards of a job must all go on from the
 * same one, so one of them decides, the first, and names it by its digest; the others find exactly
 * that, or end. The decision has a number of its own: shards that have different ones were restored
 * apart, and neither train nor are saved together.
 */
#ifndef TF_PS_ORIGIN_H
#define TF_PS_ORIGIN_H

#include "checkpoint/store/checkpoint.h"
#include "ps/client.h"

struct shard_origin {
    uint64_t decision;      /* 0: nothing was decided, as in a job that began anew */
    int64_t step, sequence; /* step -1: there was no checkpoint */
    struct ckpt_run run;
    struct digest manifest;
    int64_t generation; /* of the store, that the job saves as */
};

/* A new decision, for nothing yet. ERR_OS when the system has no random bits. */
int origin_decide(struct shard_origin *origin, struct error *err);
/* Sets the checkpoint that it is for. */
void origin_set(struct shard_origin *origin, const struct ckpt_manifest *manifest);
/* ERR_RETRY when the checkpoint is not the one that was decided on. */
int origin_check(const struct shard_origin *origin, const struct checkpoint *found,
                 struct error *err);

/* The fields of a request or an answer. */
#define ORIGIN_FIELDS 7
void origin_pack(msgpack_packer *packer, const struct shard_origin *origin);
/* decision 0 where there are none, or not all. */
void origin_take(const msgpack_object *header, struct shard_origin *origin);

/* For a shard, `task`, that is to be resumed: asks the one that the client is of, which decides.
 * ERR_RETRY when that has gone on meanwhile. */
int origin_ask(struct client *client, const char *task, struct shard_origin *origin,
               struct error *err);

#endif
