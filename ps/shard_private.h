/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the shard. Private to ps/.
 */
#ifndef TF_PS_SHARD_PRIVATE_H
#define TF_PS_SHARD_PRIVATE_H

#include <pthread.h>

#include "base/serial_queue.h"
#include "checkpoint/variables/cut.h"
#include "ps/pushes.h"
#include "ps/shard.h"
#include "ps/shard_life.h"
#include "ps/shard_measure.h"
#include "ps/step_pause.h"
#include "resource/clock.h"
#include "transport/collective/sum_server.h"

#define SHARD_WAIT_SECONDS 10.0 /* for locks, if the request names no limit */
#define SHARD_WAIT_MAX 3600.0
#define SHARD_LOCK_SECONDS                                                                         \
    20.0 /* of checkpoints that the shard makes by itself: steps may wait meanwhile */
#define SHARD_KEEP 5
#define SHARD_CUTS 2              /* one being saved, one being fetched */
#define SHARD_CUT_REMOTE "fetch:" /* prefix of the latter's names */
#define SHARD_WORKERS_MAX 1024    /* in manifests and statistics */

struct shard_cut {
    struct cut cut;
    char *name; /* the folder to write it to, or its fetcher; NULL: there is no snapshot */
    int64_t step;
    double used; /* time of the last request for it */
    bool is_collected;
};

/* The checkpoint made by other shards from which new variables get their values. */
struct shard_claims {
    char *folder; /* its store; NULL: there is none */
    int64_t step;
    struct store *store; /* NULL, like the checkpoint: closed for now */
    struct checkpoint *checkpoint;
};

struct shard {
    struct variable_watcher watcher; /* first */
    struct pushes pushes;            /* only in the first shard, if it has a folder to save to */
    struct shard_options options;
    struct arena arena;
    const char *name;                  /* of the shard's environment in a store */
    struct sum_server *sums;           /* for workers that update by themselves */
    struct step_pause *steps;          /* in a worker: where they stand still; NULL: a shard */
    double looked;                     /* in a worker: when it last looked for requests */
    struct serial_queue *quick, *slow; /* for waits for variables; for waits for other shards */
    struct serial_queue *writer; /* for disk writes; a leader waits for it, so it never leads */
    double began;
    atomic_bool ends; /* as in SHARD_ENDS: all waits end */
    /* The version at which the next checkpoint is due or, if saves go by time, that of the last
     * one. 0: the slow queue computes it from the clock's version at its next turn. */
    _Atomic int64_t due;
    double due_at; /* the time of the next one; used by the slow queue */

    struct shard_measure measure; /* used by the slow queue */

    pthread_mutex_t cuts_lock; /* guards the snapshots; held while values are copied */
    struct shard_cut cuts[SHARD_CUTS];
    struct loop_event *forget; /* drops snapshots that nobody fetches any more */

    pthread_mutex_t claims_lock; /* guards the claims; held while values are read */
    struct shard_claims claims;
    int n_written; /* stores open to write */

    pthread_mutex_t lock; /* guards what follows */
    enum shard_life life;
    struct error no_store; /* why the folder to save to could not be created; code 0: it was */
    int64_t saved_step;    /* of the last checkpoint; -1: none */
    struct store_writer saves_as;
    struct shard_origin origin; /* with the generation of saves_as */
    uint64_t origin_updates;    /* sum over all variables when that was restored */
    bool origin_is_told;        /* all other shards know it, */
    VEC(char *) askers;         /* or only these do */
    char save_text[256];        /* why the last save failed; "": it did not */
    int64_t saves;              /* checkpoints made */
    int64_t saves_failed;       /* automatic ones only */
    int64_t failed_step;        /* of the last failure; -1: none */
    char failed_text[256];      /* why */
};

/* The function of a verb, run by a queue. It replies and then calls shard_query_free. */
struct shard_query;
typedef void shard_work(struct shard_query *query);

/* A request in progress: its fields, and the peer to reply to. */
struct shard_query {
    shard_work *work;
    struct shard *shard;
    struct peer *peer; /* held */
    uint64_t id;
    struct shard_fields fields; /* in any case with seconds */
    struct tensor value;        /* in a reference-counted buffer; DTYPE_INVALID: none */
    struct arena arena;
};

/* ---- shard.c ---- */

/* Changes the state by the table, and returns the reaction. Any thread. */
enum shard_reaction shard_react(struct shard *shard, enum shard_event event);
void shard_say(struct shard *shard, const char *line);
void shard_query_free(struct shard_query *query);
/* Replies with the error. A process that was told to end reports that, so that the asker does not
 * take it for a signal of its own. */
void shard_reply_failure(struct shard_query *query, const struct error *err);
/* Replies with the error, or with success and the fields (NULL: none), and frees the query. */
void shard_query_end(struct shard_query *query, struct shard_fields *fields,
                     const struct error *err);

/* shard_verbs.c; the last two in the loop's thread */
shard_work shard_list, shard_get, shard_put, shard_reset;
void shard_status(void *shard, const struct query *query);
void shard_stats(void *shard, const struct query *query);

/* shard_cut.c */
shard_work shard_snapshot, shard_part;
/* Takes a snapshot of all that the shard keeps, under a name; it replaces one of the same kind. */
int shard_cut_take(struct shard *shard, const char *name, int64_t step, double seconds,
                   struct error *err);
/* Hands the snapshot over, with all values; shard_cut_release. ERR_RETRY: it no longer exists. */
int shard_cut_get(struct shard *shard, const char *name, struct shard_cut *cut, struct error *err);
void shard_cut_release(struct shard_cut *cut);
/* In the loop's thread: drops a snapshot that nobody fetches any more. */
void shard_cuts_forget(struct shard *shard);
void shard_cuts_end(struct shard *shard);

/* shard_save.c */
shard_work shard_write, shard_save, shard_hand_out;
const char *shard_name(struct arena *arena, const char *task); /* "ps:0": "ps-0" */

/* The other tasks of the shard's job, with links to them. */
struct shard_others {
    struct cluster cluster;
    VEC(const char *) tasks;
};
bool shard_is_of_job(const struct shard *shard, const struct cluster_task *task);
int shard_find_others(struct shard *shard, struct shard_others *others, double seconds,
                      struct error *err);
void shard_others_release(struct shard_others *others);

struct shard_save_request {
    const char *folder;
    int64_t step; /* -1: one more than the newest there */
    int keep;
    double seconds;      /* allowed for other shards to be reached, and to copy */
    double lock_wait;    /* waited for another writer of the store */
    struct clock *clock; /* paused at version `step`; resumed once all is copied; NULL: none */
};
int shard_save_all(struct shard *shard, const struct shard_save_request *wanted, int64_t *step,
                   struct error *err);

/* shard_origin.c */
shard_work shard_tell_origin;
struct store_writer shard_saves_as(struct shard *shard);
bool shard_is_own_folder(const struct shard *shard, const char *folder);

struct shard_origin shard_origin(struct shard *shard);
/* Called once the values are restored. is_told: the other shards were told to use the same; only
 * one that was restarted will ask. */
void shard_set_origin(struct shard *shard, const struct shard_origin *origin, bool is_told);
void shard_origin_end(struct shard *shard);
/* Checks that the asker of a part of a checkpoint was restored by the same decision. ERR_CONFIG. */
int shard_check_decision(struct shard *shard, uint64_t decision, struct error *err);

/* shard_restore.c */
shard_work shard_restore;
/* Ends all claims. */
void shard_claims_end(struct shard *shard);
void shard_claims_shut(struct shard *shard);
/* Opens a store to write, and closes it. As a process opens a store only once, claims in between
 * read through the open store, and let go of it at once, as its map may have to grow. */
int shard_open_store(struct shard *shard, const char *path, const struct store_options *options,
                     struct store **store, struct error *err);
void shard_close_store(struct shard *shard, struct store *store);
int shard_claims_variable(struct variable_watcher *watcher, struct variable *variable,
                          struct error *err);
void shard_claims_resource(struct shard *shard, const struct resource *resource);

/* shard_auto.c */
/* Waits until the existing clock is paused at version `from` or later; `version` is the version
 * then. 0: as soon as possible, for which workers are asked for their states. */
int shard_pause(struct shard *shard, int64_t from, double timeout, int64_t *version,
                struct error *err);
/* Work of the slow queue, which queues itself again. */
void shard_auto_save(void *shard);
/* In the slow queue: a requested checkpoint replaces an automatic one due by then, which might not
 * be finished when the job ends. */
void shard_was_saved(struct shard *shard, const char *folder, int64_t step);
/* Called for a new clock: tells it where the first checkpoint is due, so that no worker passes that
 * version before the slow queue looks at the clock. */
void shard_stop_first(struct shard *shard, struct clock *clock);

#endif
