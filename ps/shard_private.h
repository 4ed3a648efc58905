/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the shard share. Private to ps/.
 */
#ifndef TF_PS_SHARD_PRIVATE_H
#define TF_PS_SHARD_PRIVATE_H

#include <pthread.h>

#include "base/serial_queue.h"
#include "checkpoint/variables/cut.h"
#include "ps/origin.h"
#include "ps/pushes.h"
#include "ps/shard.h"
#include "ps/shard_life.h"
#include "ps/tail.h"
#include "resource/clock.h"
#include "transport/collective/sum_server.h"

#define SHARD_WAIT_SECONDS 10.0 /* for locks, where a request does not say */
#define SHARD_WAIT_MAX 3600.0
#define SHARD_LOCK_SECONDS                                                                         \
    20.0 /* of checkpoints that it makes by itself: steps may wait meanwhile */
#define SHARD_KEEP 5
#define SHARD_CUTS 2              /* one that is saved, one that is fetched */
#define SHARD_CUT_REMOTE "fetch:" /* how the names of the latter begin */
#define SHARD_WORKERS_MAX 1024    /* that a manifest and statistics tell of */

struct shard_cut {
    struct cut cut;
    char *name; /* the folder it is to be written to, or who fetches it; NULL: there is none */
    int64_t step;
    double used; /* when somebody asked for it last */
    bool is_collected;
};

struct shard_measure {
    struct tail fetches; /* of the first worker; no path: they are not there */
    char *folder;        /* of the checkpoint that is to get its scalars; NULL: none is */
    int64_t step;
    struct ckpt_run run;
    bool is_looking;
};

struct shard {
    struct resource_watcher watcher; /* first */
    struct variable_watcher variable_watcher;
    struct pushes pushes; /* of the first shard, with a folder to save to */
    struct shard_options options;
    struct arena arena;
    const char *name;        /* of its environment in a store */
    struct sum_server *sums; /* of workers that update by themselves */
    struct serial_queue *quick,
        *slow;                   /* for what waits for variables; for what waits for other shards */
    struct serial_queue *writer; /* for disks: a leader waits for it, so it leads no save itself */
    double began;
    atomic_bool ends; /* as in SHARD_ENDS: waits are given up */
    /* The version at which the next checkpoint is due, or, where they go by time, of the last one;
     * 0: it is counted from where the clock is when the slow queue has its turn. */
    _Atomic int64_t due;
    double due_at; /* the time of the next one; the slow queue's */

    struct shard_measure measure; /* the slow queue's */

    pthread_mutex_t cuts_lock; /* guards the cuts; held while values are copied */
    struct shard_cut cuts[SHARD_CUTS];
    struct loop_timer *forget; /* cuts that nobody fetches any more */

    pthread_mutex_t claims_lock; /* guards the claims; held while values are read */
    struct claims *claims;       /* of a checkpoint that other shards have made; NULL: none */
    int n_written;               /* stores that are open to write */

    pthread_mutex_t lock; /* guards what follows */
    enum shard_life life;
    struct error no_store; /* why the folder to save to could not be made; code 0: it could */
    int64_t saved_step;    /* of the last checkpoint; -1: none */
    struct store_writer saves_as;
    struct shard_origin origin; /* with the generation of saves_as */
    uint64_t origin_updates;    /* of all variables, when that was restored */
    bool origin_is_told;        /* all others know of it, */
    VEC(char *) askers;         /* or these do */
    char save_text[256];        /* how the last save went wrong; "": it did not */
    int64_t saves;              /* checkpoints that were made */
    int64_t saves_failed;       /* of those that it makes by itself */
    int64_t failed_step;        /* of the last of these; -1: none */
    char failed_text[256];      /* why */
};

/* A request that is worked on: its fields, and whom to answer. */
struct shard_query {
    struct shard *shard;
    struct peer *peer; /* held */
    uint64_t id;
    const char *container, *name, *folder; /* NULL: not given */
    struct ckpt_run run;                   /* all zero: not given */
    int64_t step, index;                   /* -1: not given */
    double seconds;
    struct tensor value; /* a counted tensor, or none */
    bool has_value;
    bool last;                  /* of checkpoints: the shard makes none by itself any more */
    struct shard_origin origin; /* decision 0: not given */
    uint64_t decision;          /* 0: not given */
    struct arena arena;
};

/* The function of a verb for a queue, which answers and then calls shard_query_free. */
typedef void shard_work(struct shard_query *query);

/* shard.c: goes on by the table, and says what is to be done. Any thread. */
enum shard_reaction shard_react(struct shard *shard, enum shard_event event);

/* shard_query.c */
void shard_query_free(struct shard_query *query);
/* Answers with the error. A process that was asked to end answers so, not as by a signal to the
 * asker. */
void shard_answer_failure(struct shard_query *query, const struct error *err);
/* Answers with the error, or that it is done, and frees. */
void shard_query_end(struct shard_query *query, const struct error *err);
/* Answers with the error, or the step of a checkpoint, and frees. */
void shard_query_end_step(struct shard_query *query, int64_t step, const struct error *err);

/* shard_verbs.c */
shard_work shard_list, shard_get, shard_put, shard_reset;
/* shard_stats.c, in the loop's thread */
void shard_status(struct shard *shard, const struct query *query);
void shard_stats(struct shard *shard, const struct query *query);

/* shard_cut.c */
shard_work shard_snapshot, shard_part;
/* A cut of all that the shard keeps, under a name; it takes the place of one of the same kind. */
int shard_cut_take(struct shard *shard, const char *name, int64_t step, double seconds,
                   struct error *err);
/* Takes it away, with all values; shard_cut_release. ERR_RETRY when it is not there any more. */
int shard_cut_get(struct shard *shard, const char *name, struct shard_cut *cut, struct error *err);
void shard_cut_release(struct shard_cut *cut);
/* In the loop's thread: gives up what nobody fetches any more. */
void shard_cuts_forget(struct shard *shard);
void shard_cuts_end(struct shard *shard);

/* shard_save.c */
shard_work shard_write, shard_save, shard_hand_out;
#define SHARD_CUT_FIELDS 3
/* The fields of a request to take a cut of that name. */
void shard_pack_cut(msgpack_packer *packer, const char *name, int64_t step, double seconds);
const char *shard_name(struct arena *arena, const char *task); /* "ps:0": "ps-0" */

struct shard_save_request {
    const char *folder;
    int64_t step; /* -1: one more than the newest there */
    int keep;
    double seconds;      /* that other shards are given to be there, and to copy */
    double lock_wait;    /* for another writer of the store */
    struct clock *clock; /* paused, at version `step`; resumed once all is copied. NULL: none */
};
int shard_save_all(struct shard *shard, const struct shard_save_request *wanted, int64_t *step,
                   struct error *err);

/* shard_measure.c, in the slow queue */
/* Before the cut of a checkpoint, while the clock is paused: what is measured of it is looked for
 * from here on. The one before gets what there is of it. */
void shard_measure_want(struct shard *shard, const struct shard_save_request *wanted);
const scalar_vec *shard_measured(struct shard *shard); /* so far */
/* The rest is added to the checkpoint, which is there, when the worker has it. */
void shard_measure_later(struct shard *shard, const char *folder, int64_t step,
                         const struct ckpt_run *run);
void shard_measure_forget(struct shard *shard);

/* shard_run.c */
#define SHARD_RUN_FIELDS 2
/* The fields of a run, in a request and in the answer to one for a cut. */
void shard_pack_run(msgpack_packer *packer, const struct ckpt_run *run);
void shard_take_run(const msgpack_object *header, struct ckpt_run *run);
/* From now on the shard saves as that run, and goes on with it if the writer does. Its own name for
 * it stays, if it was given one. */
void shard_go_on_with(struct shard *shard, const struct store_writer *writer);
struct store_writer shard_saves_as(struct shard *shard);
bool shard_is_own_folder(const struct shard *shard, const char *folder);

/* shard_origin.c */
shard_work shard_tell_origin;

/* Answers with `origin`, or with `failure` if it has a code, and frees `query`. */
void shard_answer_origin(struct shard_query *query, const struct shard_origin *origin,
                         const struct error *failure);
struct shard_origin shard_origin(struct shard *shard);
/* When the values are there. is_told: the other shards go on from the same, and none asks any more
 * unless it was started again. */
void shard_set_origin(struct shard *shard, const struct shard_origin *origin, bool is_told);
void shard_origin_end(struct shard *shard);
/* Returns whether who asks for a part of a checkpoint goes on from the same. ERR_CONFIG. */
int shard_check_decision(struct shard *shard, uint64_t decision, struct error *err);

/* shard_undone.c */
void shard_say(struct shard *shard, const char *line);
/* -1: it is not known, as the file is damaged. */
void shard_read_counts(const struct shard *shard, int64_t counts[PUSHES_WORKERS]);
/* Those of the clock that was restored, into the file; all zero if there is none. */
void shard_write_counts(struct shard *shard);
/* "restored from ckpt@300" of "a/ckpt/", and what had counted before. */
void shard_say_restored(struct shard *shard, const char *folder, int64_t step,
                        const int64_t before[PUSHES_WORKERS]);

/* shard_restore.c */
shard_work shard_restore;
/* Nothing is claimed any more. */
void shard_claims_end(struct shard *shard);
void shard_claims_shut(struct shard *shard);
/* Opens a store to write, and closes it. Claims in between are read through the open store, as a
 * process opens a store but once, and given up again at once, as its map may have to grow. */
int shard_open_store(struct shard *shard, const char *path, const struct store_options *options,
                     struct store **store, struct error *err);
void shard_close_store(struct shard *shard, struct store *store);
void shard_claims_watch(struct shard *shard);
void shard_claims_resource(struct shard *shard, const struct resource *resource);

/* shard_auto.c */
/* Waits until the clock, which is there, is paused at version `from` or later (0: as soon as can
 * be, workers are asked for their states for that); `version` is what it was then. */
int shard_pause(struct shard *shard, int64_t from, double timeout, int64_t *version,
                struct error *err);
/* Work that puts itself into the slow queue again. */
void shard_auto_save(void *shard);
/* In the slow queue: a checkpoint that somebody asked for is as good as one that was due by then,
 * which might not be over when the job is. */
void shard_was_saved(struct shard *shard, const char *folder, int64_t step);
/* A clock was just made: tells it where the first checkpoint is due, before anybody can go on
 * beyond that while the slow queue has not looked at it yet. */
void shard_stop_first(struct shard *shard, struct clock *clock);

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
