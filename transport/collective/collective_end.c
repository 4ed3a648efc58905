/* SPDX-License-Identifier: Apache-2.0
 *
 * How members agree on when to end, and part.
 */
#include "transport/collective/collective_private.h"

/* ---- the last step ---- */

static void tell(struct process_group *group, int64_t begun)
{
    const struct reduce last = {.what = REDUCE_LAST, .index = (uint64_t)begun};
    for (int k = 0; k < group->interface.size; k++)
        if (k != group->interface.rank)
            reduce_send(group, k, &last);
}

/* This member says which step it has begun, unless it has said so. */
static void say(struct process_group *group)
{
    bool *said = &group->ends[group->interface.rank].has_said;
    pthread_mutex_lock(&group->lock);
    bool is_new = !*said;
    int64_t begun = group->begun;
    *said = true;
    if (is_new && begun > group->last_step)
        group->last_step = begun;
    pthread_mutex_unlock(&group->lock);
    if (is_new)
        tell(group, begun);
}

void end_take(struct process_group *group, int rank, int64_t step)
{
    pthread_mutex_lock(&group->lock);
    group->ends[rank].has_said = true;
    if (step > group->last_step)
        group->last_step = step;
    pthread_mutex_unlock(&group->lock);
    say(group);
}

void collective_links_ask_to_end(struct collective *collective)
{
    say((struct process_group *)collective);
}

/* With the lock, as the next one: until all have said theirs, no step is begun. */
static bool is_ending(const struct process_group *group)
{
    return group->ends[group->interface.rank].has_said;
}

static bool is_agreed(const struct process_group *group)
{
    bool agreed = true;
    for (int k = 0; k < group->interface.size && agreed; k++)
        agreed = group->ends[k].has_said || group->ends[k].left || group->ends[k].leaving;
    return agreed;
}

bool collective_links_last_step(struct collective *collective, int64_t *step)
{
    struct process_group *group = (struct process_group *)collective;
    pthread_mutex_lock(&group->lock);
    bool ends = is_ending(group) && !group->failed.code;
    bool known = !ends || is_agreed(group);
    *step = ends && known ? group->last_step : INT64_MAX;
    pthread_mutex_unlock(&group->lock);
    return known;
}

bool collective_links_begin(struct collective *collective, int64_t step)
{
    struct process_group *group = (struct process_group *)collective;
    pthread_mutex_lock(&group->lock);
    bool may =
        !is_ending(group) || group->failed.code || (is_agreed(group) && step <= group->last_step);
    if (may)
        group->begun = step;
    pthread_mutex_unlock(&group->lock);
    return may;
}

/* ---- parting ---- */

int collective_links_first(struct collective *collective)
{
    struct process_group *group = (struct process_group *)collective;
    pthread_mutex_lock(&group->lock);
    int first = group->first;
    pthread_mutex_unlock(&group->lock);
    return first;
}

void collective_links_hear_of_leaving(struct collective *collective,
                                      const struct collective_leaving *leaving)
{
    ((struct process_group *)collective)->leaving_heard = *leaving;
}

struct waited {
    struct process_group *group;
    bool closing; /* not only that all is written, but that the links have ended */
};

static bool is_through(void *context)
{
    const struct waited *w = context;
    struct process_group *group = w->group;
    bool through = true;
    for (int k = 0; k < group->n_ends && through; k++) {
        struct link *link = k == group->interface.rank
                                ? NULL
                                : peers_find(hub_peers(group->hub), group->ends[k].task);
        through = !link || (!w->closing && !link_waiting(link));
        if (link)
            link_release(link);
    }
    return through;
}

void collective_links_end(struct collective *collective, double seconds)
{
    struct process_group *group = (struct process_group *)collective;
    struct waited waited = {group, false};
    collective->leave(collective);
    pthread_mutex_lock(&group->lock);
    for (int k = 0; k < group->n_ends; k++)
        group->ends[k].left = true; /* whoever ends from here on is no loss */
    pthread_mutex_unlock(&group->lock);
    loop_run_until(hub_loop(group->hub), is_through, &waited, seconds);
    collective_close_links(group, NULL);
    waited.closing = true;
    loop_run_until(hub_loop(group->hub), is_through, &waited, seconds);
}
