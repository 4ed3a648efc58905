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

static int rank_of(const struct run *run, const struct activation *a)
{
    const struct dynamic *d = run->plan->dynamic;
    int region = d->items[a->item].region;
    return region < 0 ? -1 : d->regions.items[region].rank;
}

struct activation *run_pop(struct run *run)
{
    struct activation **best = &run->queue;
    for (struct activation **at = best; *at; at = &(*at)->next)
        if (rank_of(run, *at) < rank_of(run, *best))
            best = at;
    struct activation *a = *best;
    if (a)
        *best = a->next;
    return a;
}

static bool frees(const struct run *run, const struct activation *a)
{
    const struct dynamic *d = run->plan->dynamic;
    int region = d->items[a->item].region;
    return region >= 0 && d->regions.items[region].frees;
}

struct activation *run_pop_free(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    struct activation **at = &run->queue;
    while (*at && !frees(run, *at))
        at = &(*at)->next;
    struct activation *a = *at;
    if (a)
        *at = a->next;
    pthread_mutex_unlock(&run->lock);
    return a;
}
