/* SPDX-License-Identifier: Apache-2.0
 *
 * The group of members, and the interface to it.
 */
#include "transport/collective/collective.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/container_of.h"
#include "base/map.h"
#include "base/memory.h"
#include "transport/collective/collective_device.h"
#include "transport/collective/collective_record.h"
#include "transport/collective/collective_round.h"
#include "transport/value/segment.h"

#define KEPT_BYTES ((size_t)256 << 20) /* memory of results that is kept for the next ones */

/* ---- failing ---- */

/* Ends all rounds that wait for others, unless this was known. */
static bool fail(struct process_group *group, const struct error *why)
{
    pthread_mutex_lock(&group->lock);
    bool is_first = !group->failed.code;
    if (is_first)
        group->failed = *why;
    if (is_first && group->sums)
        device_sums_give_up(group->sums, why);
    pthread_mutex_unlock(&group->lock);
    while (is_first) {
        pthread_mutex_lock(&group->lock);
        struct collective_round *r = group->rounds;
        while (r && round_react(r->state, ROUND_LOST) != REACT_FAIL)
            r = r->next;
        if (r)
            r->holders++;
        pthread_mutex_unlock(&group->lock);
        if (!r)
            break;
        round_lose(group, r, why);
        round_drop(group, r);
    }
    return is_first;
}

static void close_link(struct process_group *group, int rank, const struct error *why)
{
    struct link *link = peers_find(conns_peers(group->conns), group->ends[rank].task);
    if (!link)
        return;
    link_close(link, why);
    link_release(link);
}

void collective_close_links(struct process_group *group, const struct error *why)
{
    for (int k = 0; k < group->n_ends; k++)
        if (k != group->interface.rank)
            close_link(group, k, why);
}

void collective_links_abort(struct collective *collective, const struct error *why)
{
    struct process_group *group = (struct process_group *)collective;
    struct error reason = *why;
    reason.code = ERR_UNAVAILABLE;
    if (fail(group, &reason))
        collective_close_links(group, &reason);
}

/* ---- the connection manager's news ---- */

static int find_task(const struct process_group *group, const char *task)
{
    for (int k = 0; k < group->n_ends; k++)
        if (k != group->interface.rank && !strcmp(group->ends[k].task, task))
            return k;
    return -1;
}

/* A member that comes back when a group has failed is told so: the rest of the group is not for it.
 * */
static void peer_opened(struct conns_watcher *watcher, struct peer *peer)
{
    struct process_group *group = CONTAINER_OF(watcher, struct process_group, watcher);
    int k = find_task(group, peer_task(peer));
    if (k < 0)
        return;
    pthread_mutex_lock(&group->lock);
    struct error failed = group->failed;
    bool is_new = !failed.code && !group->ends[k].peer && !group->ends[k].left;
    if (is_new)
        group->ends[k].peer = peer_retain(peer);
    pthread_mutex_unlock(&group->lock);
    if (is_new && is_server(group, k)) {
        /* Its end of the link may open later than this one. Members that have met must not have
         * chunks passed on by a server that does not know all of them. */
        const struct reduce join = {.what = REDUCE_JOIN};
        group->ends[k].asked = true;
        reduce_send(group, k, &join);
    } else if (is_new) {
        segment_offer_to(group, k);
    } else if (failed.code) {
        close_link(group, k, &failed);
    }
}

static void peer_lost(struct conns_watcher *watcher, struct peer *peer, const struct error *why)
{
    struct process_group *group = CONTAINER_OF(watcher, struct process_group, watcher);
    struct error reason = ERROR_INIT;
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
    reason = *why;
    reason.code = ERR_UNAVAILABLE;
    if (!left && fail(group, &reason))
        collective_close_links(group, &reason);
}

static void dial_failed(struct conns_watcher *watcher, const char *task, const struct error *why)
{
    struct process_group *group = CONTAINER_OF(watcher, struct process_group, watcher);
    int k = find_task(group, task);
    if (k >= 0 && !group->ends[k].peer && !group->dial.code)
        group->dial = *why;
}

int server_of(const struct process_group *group, const struct collective_round *r, uint64_t number)
{
    uint64_t n = (uint64_t)count_servers(group);
    return group->interface.size + (int)((hash_text(r->name) % n + number) % n);
}

/* ---- the interface ---- */

/* With the lock: the round, held. */
static struct collective_round *hold_round(struct process_group *group,
                                           const struct collective_key *key,
                                           struct collective_waiter *waiter)
{
    struct collective_round *r = round_get(group, key);
    r->holders++;
    r->waiter = waiter;
    group->n_calls++;
    return r;
}

void call_tell(struct process_group *group, struct collective_round *r, struct error *err)
{
    round_tell(group, r, err);
    round_drop(group, r);
    pthread_mutex_lock(&group->lock);
    if (!--group->n_calls)
        pthread_cond_signal(&group->returned);
    pthread_mutex_unlock(&group->lock);
}

/* Values of a device are awaited before the others are told. */
static void links_reduce(struct collective *collective, const struct collective_call *call,
                         struct collective_waiter *waiter)
{
    struct process_group *group = (struct process_group *)collective;
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&group->lock);
    struct collective_round *r = hold_round(group, &call->key, waiter);
    round_call(group, r, call, &err);
    pthread_mutex_unlock(&group->lock);
    if (r->on_device)
        device_sum_await(r->on_device);
    else
        call_tell(group, r, &err);
}

void call_replace(struct process_group *group, struct collective_round *before,
                  const struct collective_call *call)
{
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&group->lock);
    struct collective_waiter *waiter = round_end(group, before);
    struct collective_round *r = waiter ? hold_round(group, &call->key, waiter) : NULL;
    if (r)
        round_call(group, r, call, &err);
    pthread_mutex_unlock(&group->lock);
    if (r)
        call_tell(group, r, &err);
}

static int links_decline(struct collective *collective, const struct collective_key *key,
                         const struct collective_group *members, struct error *err)
{
    struct process_group *group = (struct process_group *)collective;
    pthread_mutex_lock(&group->lock);
    struct collective_round *r = hold_round(group, key, NULL);
    round_decline(group, r, members);
    pthread_mutex_unlock(&group->lock);
    call_tell(group, r, err);
    return err->code;
}

/* A member that has been told of a sum on devices may have its own wait for this member's. */
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

void collective_links_announce_leave(struct collective *collective)
{
    const struct reduce about_to = {.what = REDUCE_LEAVE, .index = 1};
    reduce_send_all((struct process_group *)collective, &about_to);
}

static void links_leave(struct collective *collective)
{
    reduce_send_all((struct process_group *)collective, &(struct reduce){.what = REDUCE_LEAVE});
}

void collective_links_trim(struct collective *collective)
{
    struct process_group *group = (struct process_group *)collective;
    pthread_mutex_lock(&group->lock);
    for (int i = 0; i < GROUP_BLOCKS; i++) /* who still reads one has it */
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
    while (group->n_calls) /* of a step that is over, whose end a call has answered that goes on */
        pthread_cond_wait(&group->returned, &group->lock);
    pthread_mutex_unlock(&group->lock);
    conns_unwatch(group->conns, &group->watcher);
    conns_reduce(group->conns, NULL);
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
    group->n_ends = tasks->n + tasks->n_servers;
    group->ends = mem_array((size_t)group->n_ends, sizeof *group->ends);
    for (int k = 0; k < group->n_ends; k++)
        group->ends[k].task = mem_strdup(tasks->names[k]);
    segments_alloc(conns_segments(conns), &group->segment, UINT8, &SHAPE_SCALAR);
    group->memory = buffer_pool_new(KEPT_BYTES);
    pthread_mutex_init(&group->lock, NULL);
    pthread_cond_init(&group->returned, NULL);
    group->watcher = (struct conns_watcher){peer_opened, peer_lost, dial_failed, NULL};
    conns_watch(conns, &group->watcher);
    group->reducer = (struct conns_reducer){reduce_take, reduce_place, group};
    conns_reduce(conns, &group->reducer);
    return &group->interface;
}
