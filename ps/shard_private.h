/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the shard share. Private to ps/.
 */
#ifndef TF_PS_SHARD_PRIVATE_H
#define TF_PS_SHARD_PRIVATE_H

#include <pthread.h>

#include "exec/aggregate.h"
#include "ps/clerk.h"
#include "ps/pushes.h"
#include "ps/shard.h"
#include "ps/snapshot.h"

#define SHARD_WAIT_SECONDS 10.0 /* for holds, where a request does not say */
#define SHARD_WAIT_MAX 3600.0
#define SHARD_KEEP 5
#define SHARD_WORKERS_MAX 1024 /* that a manifest and statistics tell of */

struct shard {
    struct resource_watcher watcher; /* first */
    struct pushes pushes;            /* of the first shard, with a folder to save to */
    struct shard_options options;
    struct clerk *quick, *slow; /* for holds; for what waits for other shards, too */
    struct clerk *writer;       /* for disks: leaders wait for it, so it never leads */
    double began;
    atomic_bool ends; /* waits are given up */
    int64_t
        due; /* the version at which the next checkpoint is; 0: not said yet. The slow clerk's */

    pthread_mutex_t lock; /* guards what follows */
    struct snapshot *snapshot;
    char *snapshot_for;  /* the folder that it is to be written to */
    int64_t saved_step;  /* of the last checkpoint; -1: none */
    char save_text[256]; /* how the last save went wrong; "": it did not */
};

/* A request that is worked on: its fields, and whom to answer. */
struct shard_query {
    struct shard *shard;
    struct peer *peer; /* held */
    uint64_t id;
    const char *container, *name, *folder; /* NULL: not given */
    int64_t step;                          /* -1: not given */
    double seconds;
    struct tensor value; /* a counted tensor, or none */
    bool has_value;
    struct arena arena;
};

/* The function of a verb for a clerk, which answers and then calls shard_query_free. */
typedef void shard_work(struct shard_query *query);

void shard_query_free(struct shard_query *query);
/* Answers with the error, or that it is done, and frees. */
void shard_query_end(struct shard_query *query, const struct error *err);

/* shard_verbs.c */
shard_work shard_list, shard_get, shard_put, shard_reset;
/* shard_stats.c, in the loop's thread */
void shard_status(struct shard *shard, const struct query *query);
void shard_stats(struct shard *shard, const struct query *query);
/* shard_save.c */
shard_work shard_snapshot, shard_write, shard_save;
void shard_file_name(const char *task, char *name, size_t n); /* "ps:0": "ps-0.ckpt" */

struct shard_save_request {
    const char *folder;
    int64_t step; /* -1: one more than the newest there */
    int keep;
    double seconds;      /* that other shards are given to be there, and to copy */
    struct clock *clock; /* paused, at version `step`; resumed once all is copied. NULL: none */
};
int shard_save_all(struct shard *shard, const struct shard_save_request *wanted, int64_t *step,
                   struct error *err);

/* shard_restore.c */
shard_work shard_restore;

/* shard_auto.c */
struct clock *shard_clock(struct shard *shard); /* NULL: the graph has none, or not yet */
/* Waits until the clock, which is there, is paused at version `from` or later; `version` is what
 * it was then. */
int shard_pause(struct shard *shard, int64_t from, double timeout, int64_t *version,
                struct error *err);
/* An errand that gives itself again to the slow clerk. */
void shard_auto_save(void *shard);

/* shard_others.c: the other tasks of the shard's job, linked. */
struct shard_others {
    struct cluster cluster;
    VEC(const char *) tasks;
    struct arena arena;
};
int shard_find_others(struct shard *shard, struct shard_others *others, double seconds,
                      struct error *err);
void shard_others_release(struct shard_others *others);

#endif
