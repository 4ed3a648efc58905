/* SPDX-License-Identifier: Apache-2.0
 *
 * A parameter shard as its users see it: what the requests of tf-ps do to the variables of a server
 * (transport/session/server.h), beside the sessions that train them. docs/job.md describes the
 * requests.
 *
 *   list, get, put, reset    containers (ps/containers.h)
 *   status, stats            what the shard does
 *   save, snapshot, keep     checkpoints of all shards in a store; what one asks the others for
 *   cut, part                the same for who fetches the values over the link
 *   restore                  takes the shard back to one
 *   stop                     ends the process
 *
 * For workers that update by themselves it is a summation server, too
 * (transport/collective/sum_server.h).
 *
 * What waits for locks or disks is done by threads of the shard; the loop's thread never blocks.
 */
#ifndef TF_PS_SHARD_H
#define TF_PS_SHARD_H

#include "checkpoint/store/run.h"
#include "exec/device/device.h"
#include "graph/cluster.h"
#include "ps/origin.h"
#include "transport/value/hub.h"

struct shard_options {
    struct hub *hub;
    const char *task; /* "ps:0" */
    struct variable_store *variables;
    struct device *device; /* of variables that a restore makes */

    void *context;
    /* A request to stop was answered. In the loop's thread; NULL: the loop is stopped. */
    void (*stop)(void *context);
    /* It cannot go on, as another job has taken over the store that it saves to. Any thread; NULL:
     * nothing happens. */
    void (*fail)(void *context, const struct error *why);
    /* Where the tasks are now: whom a save asks. Any thread; NULL: there is this shard alone. */
    int (*find_cluster)(void *context, struct cluster *cluster, struct error *err);
    /* A line for the log: a save that went wrong. Any thread; may be NULL. */
    void (*tell)(void *context, const char *line);

    /* Checkpoints by itself, where the clock is. */
    const char *save_folder; /* a store, made if there is none; NULL: none */
    const char *claims;      /* of the job, for store_take_over; NULL: there is no job */
    int64_t save_every;      /* updates, none left out; 0: not by updates */
    double save_seconds;     /* 0: not by time */
    int keep;                /* checkpoints in the folder; 0: 5 */
    const char *producer;    /* tool, version and arguments, for manifests */
    struct ckpt_run run;     /* what they are of, until a resume or another shard says better */
    const char *fetches;     /* the first worker's records, for scalars; NULL: there are none */
    const char *best;        /* the metric, and which is better, as BEST_BLOB; NULL: none */
};

struct shard;

/* Registers the verbs. Objects that the options point to must outlive the shard. Before the loop
 * runs. */
struct shard *shard_new(const struct shard_options *options);

/* When the loop does not run any more. */
void shard_free(struct shard *shard);

/* Before the loop runs: restores the shard's part of a checkpoint of the folder. `wanted` NULL: the
 * shard decides for all, takes the newest that is intact, and takes the store over; else that one,
 * which the first shard has decided on (origin_ask). *restored is its step; -1: the folder has
 * none, and nothing was done. options.tell gets a line for each checkpoint that is passed over, and
 * what came of it. ERR_RETRY: there is another one in the place of the one that is wanted. */
int shard_resume(struct shard *shard, const char *folder, const struct shard_origin *wanted,
                 int64_t *restored, struct error *err);

/* After shard_resume, if there was one: ERR_CONFIG when there are checkpoints of another run in
 * options.save_folder, or why there is none and none could be made. A damaged one is found when
 * something is saved. */
int shard_check_store(struct shard *shard, struct error *err);

/* From now on it makes checkpoints by itself, if the options say so. After shard_resume: what is
 * due is counted from the clock, which must not be one that is half restored. */
void shard_start_saves(struct shard *shard);

#endif
