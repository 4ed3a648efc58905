/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: workers of one process (lib/replicas.h) that die, also in the middle of a step, and
 * start again with fresh variables and their journals. The worker's own thread survives; any thread
 * may let it die.
 */
#ifndef TF_TESTS_LIB_LIVES_H
#define TF_TESTS_LIB_LIVES_H

#include "lib/replicas.h"

#include <unistd.h>

#include "resource/journal.h"

struct lifetime {
    struct replica *worker;
    char path[32]; /* of the journal; "": it has none */
    int deaths;
    struct error err;
    pthread_mutex_t lock;
    struct step *step; /* that runs now; guarded by lock */
    bool dies;
};

static inline void life_init(struct lifetime *life, struct replica *worker, bool has_journal)
{
    *life = (struct lifetime){.worker = worker};
    pthread_mutex_init(&life->lock, NULL);
    if (!has_journal)
        return;
    strcpy(life->path, "/tmp/life.XXXXXX");
    close(mkstemp(life->path));
}

static inline void life_release(struct lifetime *life)
{
    if (*life->path)
        unlink(life->path);
    pthread_mutex_destroy(&life->lock);
}

static inline void life_end(struct lifetime *life)
{
    struct error reason = ERROR_INIT;
    error_set(&reason, ERR_CANCELLED, "it dies");
    pthread_mutex_lock(&life->lock);
    life->dies = true;
    if (life->step)
        step_cancel(life->step, &reason);
    pthread_mutex_unlock(&life->lock);
}

/* Makes the step cancellable from now on; returns false if the worker has died before. */
static inline bool life_begins(struct lifetime *life, struct step *step)
{
    pthread_mutex_lock(&life->lock);
    bool lives = !life->dies;
    life->step = lives ? step : NULL;
    pthread_mutex_unlock(&life->lock);
    return lives;
}

/* Runs an entry, which the worker's death ends. */
static inline int life_run(struct lifetime *life, const char *entry, int64_t number,
                           const char *fetch, const struct feed *feed, struct tensor *values)
{
    struct step step = {.number = number};
    if (!life_begins(life, &step))
        return error_set(&life->err, ERR_CANCELLED, "it has died");
    int code =
        worker_run_fetch(life->worker, &step, entry, fetch, feed, feed != NULL, values, &life->err);
    pthread_mutex_lock(&life->lock);
    life->step = NULL;
    pthread_mutex_unlock(&life->lock);
    return code;
}

/* Quiesces if a step or a join has fetched that it is to. */
static inline int life_rest_if(struct lifetime *life, int64_t number, struct tensor *asked)
{
    bool rests = *(const bool *)asked->data;
    tensor_release(asked);
    return rests ? life_run(life, "rest", number, NULL, NULL, NULL) : 0;
}

/* Joins; *seq: the worker's last decided step. */
static inline int life_join(struct lifetime *life, int64_t *seq)
{
    struct replica *w = life->worker;
    struct tensor values[3];
    if (*life->path) /* another process would find the same file */
        journal_place(journal_of(w->job->store, w->name), life->path, 1);
    if (life_run(life, "join", 0, "clock/join:5", NULL, values))
        return life->err.code;
    *seq = tensor_get_int64(&values[1], 0);
    tensor_release(&values[0]);
    tensor_release(&values[1]);
    return life_rest_if(life, *seq, &values[2]);
}

/* Returns whether the worker has died since this was last asked. */
static inline bool life_has_ended(struct lifetime *life)
{
    pthread_mutex_lock(&life->lock);
    bool dies = life->dies;
    life->dies = false;
    pthread_mutex_unlock(&life->lock);
    return dies;
}

static inline int life_begin_again(struct lifetime *life, int64_t *seq)
{
    struct replica *w = life->worker, old = *w;
    life->err = ERROR_INIT;
    life->deaths++;
    worker_close(w);
    worker_open(w, old.job, old.rank, old.incarnation + 1);
    return life_join(life, seq);
}

#endif
