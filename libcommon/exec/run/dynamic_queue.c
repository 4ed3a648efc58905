/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue of a run: what is ready and expensive.
 */
#include "exec/run/dynamic.h"

void run_push(struct run *run, struct activation *a)
{
    a->next = run->queue;
    run->queue = a;
    pthread_cond_signal(&run->changed);
}

static int rank_of(const struct activation *a)
{
    return a->region ? a->region->rank : -1;
}

struct activation *run_pop(struct run *run)
{
    struct activation **best = &run->queue;
    for (struct activation **at = best; *at; at = &(*at)->next)
        if (rank_of(*at) < rank_of(*best))
            best = at;
    struct activation *a = *best;
    if (a)
        *best = a->next;
    return a;
}

static bool frees(const struct activation *a)
{
    return a->region && a->region->frees;
}

struct activation *run_pop_free(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    struct activation **at = &run->queue;
    while (*at && !frees(*at))
        at = &(*at)->next;
    struct activation *a = *at;
    if (a)
        *at = a->next;
    pthread_mutex_unlock(&run->lock);
    return a;
}
