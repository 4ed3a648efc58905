/* SPDX-License-Identifier: Apache-2.0
 *
 * How members find each other and wait for each other. All of it runs the loop.
 */
#include <stdio.h>

#include "base/time.h"
#include "transport/collective/collective_private.h"

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
    struct process_group *group = context;
    return find_missing(group) < 0 || failure_of(group).code;
}

static int dial(struct process_group *group, const struct collective_join *meet, struct error *err)
{
    struct peers *peers = hub_peers(group->hub);
    int code = 0;
    for (int k = group->interface.rank + 1; !code && k < group->n_ends; k++)
        code = peers_connect(peers, group->ends[k].task, meet->addresses[k], meet->seconds, err);
    return code;
}

static void say(const struct collective_join *meet, const char *task, double left)
{
    char text[256];
    snprintf(text, sizeof text, "waiting for %s, %.0f s left", task, left);
    if (meet->waiting)
        meet->waiting(meet->context, text);
}

int collective_links_join(struct collective *collective, const struct collective_join *meet,
                          struct error *err)
{
    struct process_group *group = (struct process_group *)collective;
    double end = time_now() + meet->seconds, told = time_now();
    if (dial(group, meet, err))
        return err->code;
    while (!loop_run_until(hub_loop(group->hub), has_met, group, LOOK_SECONDS)) {
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
        if (missing < collective->rank && time_now() - told >= 1) {
            say(meet, group->ends[missing].task, left);
            told = time_now();
        }
    }
    struct error why = failure_of(group);
    if (why.code && find_missing(group) >= 0)
        *err = why;
    return err->code;
}

/* ---- a call that is waited for ---- */

struct awaited {
    struct collective_waiter waiter; /* first */
    pthread_mutex_t lock;
    struct loop *loop;
    struct tensor *results;
    int n;
    struct error err;
    bool done;
};

static void nothing(void *argument)
{
    (void)argument;
}

static void answered(struct collective_waiter *waiter, const struct collective_results *results,
                     const struct error *failure)
{
    struct awaited *a = (struct awaited *)waiter;
    for (int i = 0; i < a->n && !failure; i++)
        tensor_share(&a->results[i], &results->values[i]);
    if (failure)
        a->err = *failure;
    pthread_mutex_lock(&a->lock);
    a->done = true;
    loop_post(a->loop, nothing, NULL); /* who waits looks again; without the lock all may be gone */
    pthread_mutex_unlock(&a->lock);
}

static bool is_answered(void *context)
{
    struct awaited *a = context;
    pthread_mutex_lock(&a->lock);
    bool done = a->done;
    pthread_mutex_unlock(&a->lock);
    return done;
}

static void await(struct process_group *group, struct awaited *a, struct tensor *results, int n)
{
    *a = (struct awaited){
        .waiter = {.done = answered}, .loop = hub_loop(group->hub), .results = results, .n = n};
    pthread_mutex_init(&a->lock, NULL);
}

static int wait_for(struct awaited *a, struct error *err)
{
    while (!loop_run_until(a->loop, is_answered, a, -1))
        ;
    pthread_mutex_destroy(&a->lock);
    if (a->err.code)
        *err = a->err;
    return a->err.code;
}

int collective_links_run(struct collective *collective, const struct collective_call *call,
                         struct tensor *results, struct error *err)
{
    struct awaited a;
    await((struct process_group *)collective, &a, results, call->n);
    collective->reduce(collective, call, &a.waiter);
    return wait_for(&a, err);
}

/* ---- a call that the others may not make ---- */

struct meeting {
    struct awaited awaited;
    struct process_group *group;
    int64_t step;
};

/* Others have called with a later step. */
static bool others_go_on(struct process_group *group, int64_t step)
{
    bool go_on = false;
    pthread_mutex_lock(&group->lock);
    for (const struct collective_round *m = group->rounds; m && !go_on; m = m->next)
        go_on = m->state == ROUND_NEW && m->key.step > step;
    pthread_mutex_unlock(&group->lock);
    return go_on;
}

static bool is_decided(void *context)
{
    struct meeting *m = context;
    return is_answered(&m->awaited) || others_go_on(m->group, m->step);
}

int collective_links_meet(struct collective *collective, const struct collective_call *call,
                          struct tensor *results, bool *met, struct error *err)
{
    struct meeting m = {.group = (struct process_group *)collective, .step = call->key.step};
    await(m.group, &m.awaited, results, call->n);
    collective->reduce(collective, call, &m.awaited.waiter);
    while (!loop_run_until(m.awaited.loop, is_decided, &m, -1))
        ;
    *met = is_answered(&m.awaited) || !collective->cancel(collective, &m.awaited.waiter);
    if (*met)
        return wait_for(&m.awaited, err);
    pthread_mutex_destroy(&m.awaited.lock);
    return 0;
}
