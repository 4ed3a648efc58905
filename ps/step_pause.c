/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/step_pause.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "base/time.h"

struct step_pause {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_int n; /* threads that read, or wait until they may */
    bool holds;   /* the steps stand still */
    bool is_over;
    int64_t step; /* the last that was run, if they stand still */
};

struct step_pause *step_pause_new(void)
{
    struct step_pause *pause = mem_alloc(sizeof *pause);
    pthread_mutex_init(&pause->lock, NULL);
    time_cond_init(&pause->changed);
    return pause;
}

void step_pause_free(struct step_pause *pause)
{
    if (!pause)
        return;
    pthread_cond_destroy(&pause->changed);
    pthread_mutex_destroy(&pause->lock);
    mem_free(pause);
}

/* ---- reading ---- */

/* With the lock. */
static void reader_leaves(struct step_pause *pause)
{
    atomic_fetch_sub(&pause->n, 1);
    pthread_cond_broadcast(&pause->changed);
}

int step_pause_begin(struct step_pause *pause, double seconds, int64_t *step, struct error *err)
{
    struct timespec until = time_after(seconds);
    bool is_late = false;
    pthread_mutex_lock(&pause->lock);
    atomic_fetch_add(&pause->n, 1);
    while (!pause->holds && !pause->is_over && !is_late)
        is_late = pthread_cond_timedwait(&pause->changed, &pause->lock, &until);
    *step = pause->step;
    if (!pause->holds) {
        if (pause->is_over)
            error_set(err, ERR_UNAVAILABLE, "its last step is over");
        else
            error_set(err, ERR_RETRY, "no step ended within %g s", seconds);
        reader_leaves(pause);
    }
    pthread_mutex_unlock(&pause->lock);
    return err->code;
}

void step_pause_end(struct step_pause *pause)
{
    pthread_mutex_lock(&pause->lock);
    reader_leaves(pause);
    pthread_mutex_unlock(&pause->lock);
}

/* ---- running ---- */

bool step_pause_is_wanted(const struct step_pause *pause)
{
    return atomic_load(&pause->n);
}

void step_pause_hold(struct step_pause *pause, int64_t step)
{
    if (!step_pause_is_wanted(pause))
        return;
    pthread_mutex_lock(&pause->lock);
    pause->step = step;
    pause->holds = true;
    pthread_cond_broadcast(&pause->changed);
    while (atomic_load(&pause->n))
        pthread_cond_wait(&pause->changed, &pause->lock);
    pause->holds = false;
    pthread_mutex_unlock(&pause->lock);
}

void step_pause_close(struct step_pause *pause)
{
    pthread_mutex_lock(&pause->lock);
    pause->is_over = true;
    pthread_cond_broadcast(&pause->changed);
    pthread_mutex_unlock(&pause->lock);
}
