/* SPDX-License-Identifier: Apache-2.0
 *
 * A parameter shard as its users see it: what the requests of tf-ps do to the variables of a server
 * (transport/server.h), beside the sessions that train them. docs/job.md describes the requests.
 *
 *   list, get, put, reset    containers (ps/containers.h)
 *   status, stats            what the shard does
 *   save, snapshot, write    checkpoints (ps/save.h)
 *   restore                  takes the shard back to one
 *   stop                     ends the process
 *
 * What waits for holds or disks is done by threads of the shard; the loop's thread never blocks.
 */
#ifndef TF_PS_SHARD_H
#define TF_PS_SHARD_H

#include "exec/device.h"
#include "graph/cluster.h"
#include "transport/hub.h"

struct shard_options {
    struct hub *hub;
    const char *task; /* "ps:0" */
    struct variable_store *variables;
    struct device *device;         /* of variables that a restore makes */
    const struct cluster *cluster; /* whom `save` asks: all tasks of the job of `task` */

    /* A request to stop was answered. In the loop's thread; NULL: the loop is stopped. */
    void (*stop)(void *context);
    void *context;

    /* Checkpoints by itself, if it is the first task of its job. */
    const char *save_folder; /* NULL: none */
    int64_t save_every;      /* updates; 0: only at the end of the job */
    int keep;                /* checkpoints in the folder; 0: 5 */
};

struct shard;

/* Registers the verbs. What the options point to must outlive the shard. Before the loop runs. */
struct shard *shard_new(const struct shard_options *options);

/* When the loop does not run any more. */
void shard_free(struct shard *shard);

/* Before the loop runs: restores the shard's part of the newest intact checkpoint of a folder, or
 * the one of a step (>= 0). *restored is its step; -1: the folder has none, and nothing was done.
 * `tell` gets a line for each checkpoint that is passed over, and what came of it. */
int shard_resume(struct shard *shard, const char *folder, int64_t step,
                 void (*tell)(void *context, const char *line), void *context, int64_t *restored,
                 struct error *err);

#endif
