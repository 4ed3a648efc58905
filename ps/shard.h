/* SPDX-License-Identifier: Apache-2.0
 *
 * A parameter shard as its users see it: the requests of tf-ps on the variables of a server
 * (transport/session/server.h), beside the sessions that train them. docs/job.md describes the
 * requests.
 *
 *   list, get, put, reset    containers (ps/containers.h)
 *   status, stats            what the shard is doing
 *   save, snapshot, keep     checkpoints of all shards in a store; requests between shards
 *   cut, part                the same for a client that fetches the values over the link
 *   restore                  takes the shard back to a checkpoint
 *   stop                     ends the process
 *
 * For workers that update by themselves it is also a summation server
 * (transport/collective/sum_server.h). Such a worker answers what only reads its variables (list,
 * get, save, cut, part, status, stats): for this it has a shard of its own, with options.is_worker.
 *
 * Work that waits for locks or disks is done by threads of the shard; the loop's thread never
 * blocks.
 */
#ifndef TF_PS_SHARD_H
#define TF_PS_SHARD_H

#include "checkpoint/store/save.h"
#include "exec/device/device.h"
#include "graph/cluster.h"
#include "ps/fields.h"
#include "transport/value/conns.h"

struct shard_options {
    struct conns *conns;
    const char *task; /* "ps:0" */
    struct variable_store *variables;
    struct device *device; /* where a restore creates variables */
    bool is_worker;        /* its own steps change the variables; others only read them */

    void *context;
    /* Called after a request to stop was replied to, in the loop's thread. NULL: stops the loop. */
    void (*stop)(void *context);
    /* Called if the shard cannot go on, as another job has taken over its store. Any thread; NULL:
     * nothing happens. */
    void (*fail)(void *context, const struct error *why);
    /* Finds where the tasks are now, for a save. Any thread; NULL: this shard is alone. */
    int (*find_cluster)(void *context, struct cluster *cluster, struct error *err);
    /* Gets a line for the log, such as a failed save. Any thread; may be NULL. */
    void (*tell)(void *context, const char *line);

    /* Automatic checkpoints, by the shard that has the clock. */
    const char *save_folder; /* a store, created if missing; NULL: none */
    const char *claims;      /* of the job, for store_take_over; NULL: there is no job */
    int64_t save_every;      /* exactly so many updates; 0: not by updates */
    double save_seconds;     /* 0: not by time */
    int keep;                /* checkpoints in the folder; 0: 5 */
    const char *producer;    /* tool, version and arguments, for manifests */
    struct ckpt_run run;     /* of the checkpoints, until a resume or another shard sets it */
    const char *fetches;     /* the first worker's fetch records, for scalars; NULL: none */
    const char *best;        /* metric and direction, as in BEST_BLOB; NULL: none */
};

struct shard;

/* Registers the verbs, before the loop runs. Objects that the options point to must outlive the
 * shard. */
struct shard *shard_new(const struct shard_options *options);

/* Called when the loop no longer runs, or, in a worker, before others run it: they refuse all. */
void shard_free(struct shard *shard);

/* Before the loop runs: restores the shard's part of a checkpoint in the folder. `wanted` NULL: the
 * shard decides for all: it uses the newest intact one, and takes the store over. Else it restores
 * `wanted`, on which the first shard has decided (verbs_origin). *restored is the step; -1: the
 * folder has none, and nothing was done. options.tell gets a line for each checkpoint skipped, and
 * the result. ERR_RETRY: another checkpoint is in the place of `wanted`. */
int shard_resume(struct shard *shard, const char *folder, const struct shard_origin *wanted,
                 int64_t *restored, struct error *err);

/* Called after any shard_resume. ERR_CONFIG: options.save_folder has checkpoints of another run; or
 * the error why no store could be created there. A damaged store shows at the first save. */
int shard_check_store(struct shard *shard, struct error *err);

/* From now on the shard saves as that run, and continues it if the writer does. If the shard was
 * given a name for its run, it keeps that name. Any thread. */
void shard_go_on_with(struct shard *shard, const struct store_writer *writer);

/* Starts automatic checkpoints, if the options say so. Called after shard_resume: what is due
 * depends on the clock, which must be completely restored. */
void shard_start_saves(struct shard *shard);

/* ---- in a worker, for the thread that runs steps and the loop, between two steps ---- */

/* Answers what came since the last step; returns whether somebody waits to read the variables. */
bool shard_is_asked(struct shard *shard);
/* Stands still as long as others read them. All snapshots of them are collected. */
void shard_let_read(struct shard *shard, int64_t step);
/* No step follows: from now on nobody waits for one. */
void shard_steps_end(struct shard *shard);

#endif
