/* SPDX-License-Identifier: Apache-2.0
 *
 * The group of members and its interface: how members join, wait for each other, agree on when to
 * end, and leave.
 */
#include "transport/collective/collective.h"

#include <stdio.h>
#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "base/time.h"
#include "transport/collective/collective_record.h"
#include "transport/collective/collective_round.h"
#include "transport/value/segment.h"

#define KEPT_BYTES ((size_t)256 << 20) /* memory of results that is kept for the next ones */
#define LOOK_SECONDS 0.1               /* between checks whether to give up */

/* ---- failing ---- */

static bool waits(const struct process_group *group, const struct collective_round *r)
{
    (void)group;
    return r->state >= ROUND_CALLED;
}

void end_close(struct process_group *group, int end, const struct error *why)
{
    struct link *link = peers_find(conns_peers(group->conns), group->ends[end].task);
    if (!link)
        return;
    link_close(link, why);
    link_release(link);
}

/* Closes the links to all members and servers; with `why` NULL, in an orderly way. Any thread. */
static void close_links(struct process_group *group, const struct error *why)
{
    for (int k = 0; k < group->n_ends; k++)
        if (k != group->interface.rank)
            end_close(group, k, why);
}

/* Fails all rounds that wait for others, unless the group has failed before. */
void collective_links_abort(struct collective *collective, const struct error *why)
{
    struct process_group *group = (struct process_group *)collective;
    struct error reason = *why;
    struct collective_round *r;
    reason.code = ERR_UNAVAILABLE;
    pthread_mutex_lock(&group->lock);
    bool is_first = !group->failed.code;
    if (is_first)
        group->failed = reason;
    if (is_first && group->sums)
        device_sums_give_up(group->sums, &reason);
    pthread_mutex_unlock(&group->lock);
    while (is_first && (r = round_hold(group, waits))) {
        round_lose(group, r, &reason);
        round_drop(group, r);
    }
    if (is_first)
        close_links(group, &reason);
}

/* ---- events of the connection manager ---- */

static int find_task(const struct process_group *group, const char *task)
{
    for (int k = 0; k < group->n_ends; k++)
        if (k != group->interface.rank && !strcmp(group->ends[k].task, task))
            return k;
    return -1;
}

/* The other end is asked to reply if it may read this member's segment; and if it is a server,
 * whose end of the link may open later than this one: members that have joined must not have chunks
 * forwarded by a server that does not know all of them. A member that returns after the group has
 * failed is told why: the group does not continue with it. */
static void peer_opened(struct conns_watcher *watcher, struct peer *peer)
{
    struct process_group *group = CONTAINER_OF(watcher, struct process_group, watcher);
    int k = find_task(group, peer_task(peer));
    if (k < 0)
        return;
    struct group_end *end = &group->ends[k];
    pthread_mutex_lock(&group->lock);
    struct error failed = group->failed;
    bool is_new = !failed.code && !end->peer && !end->left;
    if (is_new)
        end->peer = peer_retain(peer);
    pthread_mutex_unlock(&group->lock);
    bool offers = is_new && !is_server(group, k) && group->segment.data && peer_shares_memory(peer);
    if (is_new)
        end->asked = is_server(group, k) || offers;
    if (is_new && end->asked)
        reduce_send_to(
            group, peer,
            &(struct reduce){.what = REDUCE_JOIN, .shared = offers ? &group->segment : NULL});
    if (failed.code)
        end_close(group, k, &failed);
}

static void peer_lost(struct conns_watcher *watcher, struct peer *peer, const struct error *why)
{
    struct process_group *group = CONTAINER_OF(watcher, struct process_group, watcher);
    int k = find_task(group, peer_task(peer));
    if (k < 0)
        return;
    pthread_mutex_lock(&group->lock);
    bool mine = group->ends[k].peer == peer, left = group->ends[k].left;
    if (mine)
        group->ends[k].peer = NULL;
    pthread_mutex_unlock(&group->lock);
    if (!mine)
        return;
    peer_release(peer);
    if (!left)
        collective_links_abort(&group->interface, why);
}

static void dial_failed(struct conns_watcher *watcher, const char *task, const struct error *why)
{
    struct process_group *group = CONTAINER_OF(watcher, struct process_group, watcher);
    int k = find_task(group, task);
    if (k >= 0 && !group->ends[k].peer && !group->dial.code)
        group->dial = *why;
}

/* ---- the interface ---- */

/* Values on a device are computed before the others are told. */
static void links_reduce(struct collective *collective, const struct collective_call *call,
                         struct collective_waiter *waiter)
{
    struct process_group *group = (struct process_group *)collective;
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&group->lock);
    struct collective_round *r = round_call(group, call, waiter, &err);
    pthread_mutex_unlock(&group->lock);
    if (r->on_device)
        device_sum_await(r->on_device);
    else
        round_tell(group, r, &err);
}

static int links_decline(struct collective *collective, const struct collective_key *key,
                         const struct collective_group *members, struct error *err)
{
    struct process_group *group = (struct process_group *)collective;
    const struct collective_call nothing = {.key = *key, .group = *members};
    pthread_mutex_lock(&group->lock);
    struct collective_round *r = round_call(group, &nothing, NULL, err);
    pthread_mutex_unlock(&group->lock);
    round_tell(group, r, err);
    return err->code;
}

/* Another member that knows of a sum on devices may already wait for this member in the library: so
 * a cancelled sum ends all of them. */
static bool links_cancel(struct collective *collective, struct collective_waiter *waiter)
{
    struct process_group *group = (struct process_group *)collective;
    pthread_mutex_lock(&group->lock);
    struct collective_round *r = group->rounds;
    while (r && r->waiter != waiter)
        r = r->next;
    if (r && r->on_device) {
        struct error why = ERROR_INIT;
        error_set(&why, ERR_CANCELLED, "a sum on devices was given up");
        device_sums_give_up(group->sums, &why);
    }
    if (r) {
        r->holders++;
        round_end(group, r);
    }
    pthread_mutex_unlock(&group->lock);
    if (r)
        round_drop(group, r);
    return r != NULL;
}

static void links_leave(struct collective *collective)
{
    reduce_send_all((struct process_group *)collective, &(struct reduce){.what = REDUCE_LEAVE});
}

void collective_links_trim(struct collective *collective)
{
    struct process_group *group = (struct process_group *)collective;
    pthread_mutex_lock(&group->lock);
    for (int i = 0; i < GROUP_BLOCKS; i++) /* readers hold their blocks */
        tensor_release(&group->blocks[i]);
    pthread_mutex_unlock(&group->lock);
    segments_trim(conns_segments(group->conns), 0);
    buffer_pool_trim(group->memory, 0);
}

static void links_free(struct collective *collective)
{
    struct process_group *group = (struct process_group *)collective;
    struct collective_round *r;
    device_sums_free(group->sums);
    pthread_mutex_lock(&group->lock);
    while (group->n_calls) /* calls may return after their reply has ended the step */
        pthread_cond_wait(&group->returned, &group->lock);
    pthread_mutex_unlock(&group->lock);
    conns_unwatch(group->conns, &group->watcher);
    while ((r = group->rounds)) {
        pthread_mutex_lock(&group->lock);
        r->holders++;
        round_end(group, r);
        pthread_mutex_unlock(&group->lock);
        round_drop(group, r);
    }
    for (int k = 0; k < group->n_ends; k++) {
        peer_release(group->ends[k].peer);
        tensor_release(&group->ends[k].segment);
        mem_free(group->ends[k].task);
    }
    collective_links_trim(collective);
    tensor_release(&group->segment);
    buffer_pool_free(group->memory);
    pthread_cond_destroy(&group->returned);
    pthread_mutex_destroy(&group->lock);
    mem_free(group->ends);
    mem_free(group);
}

struct collective *collective_links_new(struct conns *conns, const struct collective_tasks *tasks,
                                        int rank)
{
    struct process_group *group = mem_alloc(sizeof *group);
    BUG_ON(rank < 0 || rank >= tasks->n);
    group->interface = (struct collective){.rank = rank,
                                           .size = tasks->n,
                                           .reduce = links_reduce,
                                           .decline = links_decline,
                                           .cancel = links_cancel,
                                           .leave = links_leave,
                                           .free = links_free};
    group->conns = conns;
    group->leaves = tasks->leaves;
    group->context = tasks->context;
    group->n_ends = tasks->n + tasks->n_servers;
    group->ends = mem_array((size_t)group->n_ends, sizeof *group->ends);
    for (int k = 0; k < group->n_ends; k++)
        group->ends[k].task = mem_strdup(tasks->names[k]);
    segments_alloc(conns_segments(conns), &group->segment, UINT8, &SHAPE_SCALAR);
    group->memory = buffer_pool_new(KEPT_BYTES);
    pthread_mutex_init(&group->lock, NULL);
    pthread_cond_init(&group->returned, NULL);
    group->watcher = (struct conns_watcher){peer_opened, peer_lost,    dial_failed,
                                            reduce_take, reduce_place, NULL};
    conns_watch(conns, &group->watcher);
    return &group->interface;
}

/* ---- joining ---- */

/* Returns the first end that is not connected, or has not yet replied to an offer or a join; -1:
 * none. */
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

/* Returns why the members cannot join; code 0: no failure is known. */
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

int collective_links_join(struct collective *collective, const struct cluster *cluster,
                          const struct member_options *options, struct error *err)
{
    struct process_group *group = (struct process_group *)collective;
    const struct peers_news *news = &options->news;
    double end = time_now() + options->timeout, told = time_now();
    for (int k = collective->rank + 1; k < group->n_ends; k++) {
        const char *task = group->ends[k].task;
        if (peers_connect(conns_peers(group->conns), task, member_find_task(cluster, task)->address,
                          options->timeout, err))
            return err->code;
    }
    while (!loop_run_until(conns_loop(group->conns), has_met, group, LOOK_SECONDS)) {
        int missing = find_missing(group);
        double left = end - time_now();
        if (missing < 0)
            break;
        if (options->given_up && options->given_up(news->context))
            return error_set(err, ERR_CANCELLED, "given up while waiting for %s",
                             group->ends[missing].task);
        if (left < 0)
            return error_set(err, ERR_UNAVAILABLE, "%s did not come in %.0f s",
                             group->ends[missing].task, options->timeout);
        if (news->waiting && missing < collective->rank && time_now() - told >= 1) {
            char text[256];
            snprintf(text, sizeof text, "waiting for %s, %.0f s left", group->ends[missing].task,
                     left);
            news->waiting(news->context, group->ends[missing].task, text);
            told = time_now();
        }
    }
    struct error why = failure_of(group);
    if (why.code && find_missing(group) >= 0)
        *err = why;
    return err->code;
}

/* ---- a blocking call ---- */

struct awaited_call {
    struct collective_waiter waiter; /* first */
    struct process_group *group;
    const int64_t *step; /* NULL: all members make the call */
    struct tensor *results;
    int n;
    struct error err;
    bool done; /* the loop's thread only */
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

/* Returns whether the call is answered, or another member has called with a later step. */
static bool is_decided(void *context)
{
    struct awaited_call *a = context;
    bool is_decided = is_answered(a);
    if (is_decided || !a->step)
        return is_decided;
    pthread_mutex_lock(&a->group->lock);
    for (const struct collective_round *r = a->group->rounds; r && !is_decided; r = r->next)
        is_decided = r->state == ROUND_NEW && r->call.key.step > *a->step;
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

/* Tells all, once, which step this member has begun last. */
void collective_links_ask_to_end(struct collective *collective)
{
    struct process_group *group = (struct process_group *)collective;
    bool *said = &group->ends[collective->rank].has_said;
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

/* With the lock: returns the last step that may be begun; -1: none, as not all members have said
 * which step they have begun. */
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

/* ---- leaving ---- */

void collective_links_announce_leave(struct collective *collective)
{
    const struct reduce about_to = {.what = REDUCE_LEAVE, .index = 1};
    reduce_send_all((struct process_group *)collective, &about_to);
}

int collective_links_first(struct collective *collective)
{
    struct process_group *group = (struct process_group *)collective;
    pthread_mutex_lock(&group->lock);
    int first = group->first;
    pthread_mutex_unlock(&group->lock);
    return first;
}

/* Returns whether all has been sent, or, once links are being closed, whether all have ended. */
static bool is_through(void *context)
{
    struct process_group *group = context;
    bool through = true;
    for (int k = 0; k < group->n_ends && through; k++) {
        struct link *link = k == group->interface.rank
                                ? NULL
                                : peers_find(conns_peers(group->conns), group->ends[k].task);
        through = !link || (!group->closes && !link_waiting(link));
        if (link)
            link_release(link);
    }
    return through;
}

void collective_links_end(struct collective *collective, double seconds)
{
    struct process_group *group = (struct process_group *)collective;
    collective->leave(collective);
    pthread_mutex_lock(&group->lock);
    for (int k = 0; k < group->n_ends; k++)
        group->ends[k].left = true; /* a link that ends from here on is no loss */
    pthread_mutex_unlock(&group->lock);
    loop_run_until(conns_loop(group->conns), is_through, group, seconds);
    close_links(group, NULL);
    group->closes = true;
    loop_run_until(conns_loop(group->conns), is_through, group, seconds);
}
