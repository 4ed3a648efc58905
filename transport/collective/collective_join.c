/* SPDX-License-Identifier: Apache-2.0
 *
 * How members find each other, wait for each other, agree on when to end, and part.
 */
#include <stdio.h>

#include "base/time.h"
#include "transport/collective/collective_record.h"
#include "transport/collective/collective_round.h"

#define LOOK_SECONDS 0.1 /* between questions whether to give up */

/* The first end that is not there, or has not said whether it can read what is shared; -1: none.
 */
static int find_missing(struct process_group *group)
{
    int missing = -1;
    pthread_mutex_lock(&group->lock);
    for (int k = 0; k < group->n_ends && missing < 0; k++)
        if (k != group->interface.rank && !group->ends[k].left &&
            (!group->ends[k].peer || group->ends[k].asked))
            missing = k;
    pthread_mutex_unlock(&group->lock);
    return missing;
}

/* Why they will not meet; no code: nothing is known. */
static struct error failure_of(struct process_group *group)
{
    pthread_mutex_lock(&group->lock);
    struct error why = group->failed;
    pthread_mutex_unlock(&group->lock);
    return why.code ? why : group->dial;
}

static bool has_met(void *context)
{
    return find_missing(context) < 0 || failure_of(context).code;
}

int collective_links_join(struct collective *collective, const struct collective_join *meet,
                          struct error *err)
{
    struct process_group *group = (struct process_group *)collective;
    double end = time_now() + meet->seconds, told = time_now();
    for (int k = collective->rank + 1; k < group->n_ends; k++)
        if (peers_connect(conns_peers(group->conns), group->ends[k].task, meet->addresses[k],
                          meet->seconds, err))
            return err->code;
    while (!loop_run_until(conns_loop(group->conns), has_met, group, LOOK_SECONDS)) {
        int missing = find_missing(group);
        double left = end - time_now();
        if (missing < 0)
            break;
        if (meet->given_up && meet->given_up(meet->context))
            return error_set(err, ERR_CANCELLED, "given up while waiting for %s",
                             group->ends[missing].task);
        if (left < 0)
            return error_set(err, ERR_UNAVAILABLE, "%s did not come in %.0f s",
                             group->ends[missing].task, meet->seconds);
        if (meet->waiting && missing < collective->rank && time_now() - told >= 1) {
            char text[256];
            snprintf(text, sizeof text, "waiting for %s, %.0f s left", group->ends[missing].task,
                     left);
            meet->waiting(meet->context, text);
            told = time_now();
        }
    }
    struct error why = failure_of(group);
    if (why.code && find_missing(group) >= 0)
        *err = why;
    return err->code;
}

/* ---- a call that is waited for ---- */

struct awaited_call {
    struct collective_waiter waiter; /* first */
    struct process_group *group;
    const int64_t *step; /* NULL: it is made by all */
    struct tensor *results;
    int n;
    struct error err;
    bool done; /* the loop's thread's own */
};

static void set_done(void *context)
{
    ((struct awaited_call *)context)->done = true;
}

static void answered(struct collective_waiter *waiter, const struct collective_results *results,
                     const struct error *failure)
{
    struct awaited_call *a = (struct awaited_call *)waiter;
    for (int i = 0; i < a->n && !failure; i++)
        tensor_share(&a->results[i], &results->values[i]);
    if (failure)
        a->err = *failure;
    loop_post(conns_loop(a->group->conns), set_done, a);
}

static bool is_answered(void *context)
{
    return ((const struct awaited_call *)context)->done;
}

/* Or others have called with a later step than is waited for. */
static bool is_decided(void *context)
{
    struct awaited_call *a = context;
    bool is_decided = is_answered(a);
    if (is_decided || !a->step)
        return is_decided;
    pthread_mutex_lock(&a->group->lock);
    for (const struct collective_round *r = a->group->rounds; r && !is_decided; r = r->next)
        is_decided = r->state == ROUND_NEW && r->key.step > *a->step;
    pthread_mutex_unlock(&a->group->lock);
    return is_decided;
}

int collective_links_run(struct collective *collective, const struct collective_call *call,
                         struct tensor *results, bool *met, struct error *err)
{
    struct process_group *group = (struct process_group *)collective;
    struct awaited_call a = {.waiter = {.done = answered},
                             .group = group,
                             .step = met ? &call->key.step : NULL,
                             .results = results,
                             .n = call->n};
    collective->reduce(collective, call, &a.waiter);
    while (!loop_run_until(conns_loop(group->conns), is_decided, &a, -1))
        ;
    bool meets = is_answered(&a) || !collective->cancel(collective, &a.waiter);
    while (meets && !loop_run_until(conns_loop(group->conns), is_answered, &a, -1))
        ;
    if (met)
        *met = meets;
    if (a.err.code)
        *err = a.err;
    return a.err.code;
}

/* ---- the last step ---- */

/* This member says which step it has begun, unless it has said so. */
static void say_last(struct process_group *group)
{
    bool *said = &group->ends[group->interface.rank].has_said;
    pthread_mutex_lock(&group->lock);
    bool is_new = !*said;
    const struct reduce last = {.what = REDUCE_LAST, .index = (uint64_t)group->begun};
    *said = true;
    if (is_new && group->begun > group->last_step)
        group->last_step = group->begun;
    pthread_mutex_unlock(&group->lock);
    if (is_new)
        reduce_send_all(group, &last);
}

void end_take(struct process_group *group, int rank, int64_t step)
{
    pthread_mutex_lock(&group->lock);
    group->ends[rank].has_said = true;
    if (step > group->last_step)
        group->last_step = step;
    pthread_mutex_unlock(&group->lock);
    say_last(group);
}

void collective_links_ask_to_end(struct collective *collective)
{
    say_last((struct process_group *)collective);
}

/* With the lock: the last step that may be begun; -1: it is not known yet, as until all have said
 * theirs none is. */
static int64_t last_step(const struct process_group *group)
{
    if (!group->ends[group->interface.rank].has_said || group->failed.code)
        return INT64_MAX;
    for (int k = 0; k < group->interface.size; k++)
        if (!group->ends[k].has_said && !group->ends[k].left && !group->ends[k].leaving)
            return -1;
    return group->last_step;
}

bool collective_links_last_step(struct collective *collective, int64_t *step)
{
    struct process_group *group = (struct process_group *)collective;
    pthread_mutex_lock(&group->lock);
    int64_t last = last_step(group);
    pthread_mutex_unlock(&group->lock);
    *step = last < 0 ? INT64_MAX : last;
    return last >= 0;
}

bool collective_links_begin(struct collective *collective, int64_t step)
{
    struct process_group *group = (struct process_group *)collective;
    pthread_mutex_lock(&group->lock);
    bool may = step <= last_step(group);
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
                                      const struct collective_leave *leaving)
{
    ((struct process_group *)collective)->leaving_heard = *leaving;
}

struct group_wait {
    struct process_group *group;
    bool closing; /* not only that all is written, but that the links have ended */
};

static bool is_through(void *context)
{
    const struct group_wait *w = context;
    struct process_group *group = w->group;
    bool through = true;
    for (int k = 0; k < group->n_ends && through; k++) {
        struct link *link = k == group->interface.rank
                                ? NULL
                                : peers_find(conns_peers(group->conns), group->ends[k].task);
        through = !link || (!w->closing && !link_waiting(link));
        if (link)
            link_release(link);
    }
    return through;
}

void collective_links_end(struct collective *collective, double seconds)
{
    struct process_group *group = (struct process_group *)collective;
    struct group_wait waited = {group, false};
    collective->leave(collective);
    pthread_mutex_lock(&group->lock);
    for (int k = 0; k < group->n_ends; k++)
        group->ends[k].left = true; /* whoever ends from here on is no loss */
    pthread_mutex_unlock(&group->lock);
    loop_run_until(conns_loop(group->conns), is_through, &waited, seconds);
    collective_close_links(group, NULL);
    waited.closing = true;
    loop_run_until(conns_loop(group->conns), is_through, &waited, seconds);
}
