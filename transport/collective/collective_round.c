/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds: the list of them, and their lives by the table of collective/round.h.
 */
#include <string.h>

#include "base/failpoint.h"
#include "base/map.h"
#include "base/memory.h"
#include "transport/collective/collective_device.h"
#include "transport/collective/collective_record.h"
#include "transport/collective/collective_round.h"
#include "transport/value/segment.h"

/* ---- the list ---- */

struct collective_round *round_find(struct process_group *group, const struct collective_key *key)
{
    struct collective_round *r = group->rounds;
    while (r && (r->key.step != key->step || r->key.iteration != key->iteration ||
                 strcmp(r->name, key->name) != 0))
        r = r->next;
    return r;
}

struct collective_round *round_get(struct process_group *group, const struct collective_key *key)
{
    struct collective_round *r = round_find(group, key);
    if (r)
        return r;
    r = mem_alloc(sizeof *r);
    r->holders = 1;
    r->name = mem_strdup(key->name);
    r->key = *key;
    r->key.name = r->name;
    r->contributions = mem_array((size_t)group->interface.size, sizeof *r->contributions);
    r->next = group->rounds;
    group->rounds = r;
    group->n_uncalled++;
    return r;
}

static void release(struct tensor *tensors, int n)
{
    for (int i = 0; tensors && i < n; i++)
        tensor_release(&tensors[i]);
    mem_free(tensors);
}

void round_drop(struct process_group *group, struct collective_round *r)
{
    pthread_mutex_lock(&group->lock);
    bool last = !--r->holders;
    pthread_mutex_unlock(&group->lock);
    if (!last)
        return;
    release(r->own, r->n);
    if (r->answered) { /* who may be the one holder of the results: all else has let go of them */
        const struct collective_results results = {r->results, r->at, r->n_members};
        r->answered->done(r->answered, &results, NULL);
    }
    chunks_free(group, r);
    for (int k = 0; k < group->interface.size; k++) {
        release(r->contributions[k].values, r->contributions[k].n);
        mem_free(r->contributions[k].rows);
    }
    rows_free(r);
    release(r->results, r->n);
    device_sum_free(r->on_device);
    mem_free(r->contributions);
    mem_free(r->members);
    mem_free(r->kinds);
    mem_free(r->name);
    mem_free(r);
}

struct collective_waiter *round_end(struct process_group *group, struct collective_round *r)
{
    struct collective_waiter *waiter = r->waiter;
    struct collective_round **at = &group->rounds;
    if (r->state == ROUND_OVER)
        return NULL;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    if (group->sums)
        device_sums_pass(group->sums, r);
    group->n_uncalled -= r->state == ROUND_NEW;
    r->holders--; /* the list's; the caller has another */
    r->waiter = NULL;
    r->state = ROUND_OVER;
    return waiter;
}

void round_fail(struct process_group *group, struct collective_round *r, const struct error *err)
{
    pthread_mutex_lock(&group->lock);
    struct collective_waiter *waiter = round_end(group, r);
    pthread_mutex_unlock(&group->lock);
    if (waiter)
        waiter->done(waiter, NULL, err);
}

void round_lose(struct process_group *group, struct collective_round *r, const struct error *why)
{
    struct error err = *why;
    error_waited(&err, "'%s'", r->name);
    round_fail(group, r, &err);
}

/* ---- the call ---- */

/* Makes a signature of kinds, types, and shapes but for how many rows there are. */
static uint64_t sign(const struct collective_round *r, int size)
{
    const int64_t call[7] = {r->n,         r->has_root,   r->has_root ? r->root : 0,
                             r->wants,     r->group.size, r->group.stride,
                             r->by_servers};
    uint64_t hash =
        hash_bytes(call, sizeof call, r->on_device ? UINT64_MAX : (uint64_t)r->schedule.kind);
    if (r->schedule.hosts)
        hash = hash_bytes(r->schedule.hosts, (size_t)size * sizeof *r->schedule.hosts, hash);
    for (int i = 0; i < r->n; i++) {
        const struct shape *shape = &r->own[i].shape;
        bool rows = collective_gathers(r->kinds[i]) && shape->rank > 0;
        const int64_t head[3] = {r->kinds[i], r->own[i].type, shape->rank};
        hash = hash_bytes(head, sizeof head, hash);
        hash = hash_bytes(shape->dims + rows, (size_t)(shape->rank - rows) * sizeof *shape->dims,
                          hash);
    }
    return hash;
}

/* Memory for a value's sum: the value's own where only the call has it, which a member needs no
 * more when the sum comes; or such as others can read, if the value's is. */
static int make_result(struct process_group *group, const struct collective_call *call, int value,
                       struct collective_round *r, struct error *err)
{
    const struct tensor *own = &r->own[value];
    bool alone = atomic_load(&own->buffer->holders) == 2 && /* the caller, and the round */
                 (!segment_has(own) || segment_is_own(own));
    if (call->yields && alone)
        tensor_share(&r->results[value], own);
    else if (!segment_has(own) || !segment_suits(own->type, tensor_bytes(own)) ||
             !segments_alloc(conns_segments(group->conns), &r->results[value], own->type,
                             &own->shape))
        return buffer_pool_alloc(group->memory, &r->results[value], own, tensor_bytes(own), err);
    return 0;
}

bool round_lacks(const struct process_group *group, const struct collective_round *r, int rank)
{
    return group->ends[rank].left || (group->ends[rank].leaving && !r->with_leaving);
}

bool round_meets(const struct process_group *group, const struct collective_round *r, int rank)
{
    return collective_group_has(&r->group, group->interface.rank, rank);
}

static void begin_call(struct process_group *group, struct collective_round *r,
                       const struct collective_group *members)
{
    BUG_ON(round_react(r->state, ROUND_CALL) != REACT_TAKE);
    r->state = ROUND_CALLING;
    r->group = *members;
    group->n_uncalled--;
}

void round_decline(struct process_group *group, struct collective_round *r,
                   const struct collective_group *members)
{
    begin_call(group, r, members);
    r->declined = true;
}

int round_call(struct process_group *group, struct collective_round *r,
               const struct collective_call *call, struct error *err)
{
    int code = 0;
    begin_call(group, r, &call->group);
    r->n = call->n;
    r->priority = call->priority;
    r->at = call->at;
    if (call->at.device) /* which has a way of its own */
        device_sum_new(group, r, call);
    else
        r->schedule = call->schedule;
    r->with_leaving = call->with_leaving;
    r->by_servers = call->by_servers && count_servers(group) > 0;
    r->kinds = mem_array((size_t)call->n + 1, sizeof *r->kinds);
    r->own = mem_array((size_t)call->n + 1, sizeof *r->own);
    r->results = mem_array((size_t)call->n + 1, sizeof *r->results);
    for (int i = 0; i < call->n; i++) {
        r->kinds[i] = call->kinds[i];
        tensor_share(&r->own[i], &call->values[i]);
    }
    rows_call(group, r, call);
    r->signature = sign(r, group->interface.size);
    if (r->on_device)
        return 0;
    chunks_cut(group, r);
    for (int i = 0; !code && i < r->n; i++)
        if (!r->routed[i].is_routed && !round_is_small(r, i))
            code = make_result(group, call, i, r, err);
    return code;
}

/* ---- who takes part ---- */

/* With the lock: whether all others were heard, or have left, and it has not settled. */
static bool has_all(const struct process_group *group, const struct collective_round *r)
{
    bool all = round_react(r->state, ROUND_CONTRIBUTION) == REACT_TAKE;
    for (int k = 0; k < group->interface.size && all; k++)
        all = k == group->interface.rank || r->contributions[k].here || round_lacks(group, r, k) ||
              !round_meets(group, r, k);
    return all;
}

/* With the lock. */
static void settle(struct process_group *group, struct collective_round *r)
{
    int size = group->interface.size, rank = group->interface.rank;
    r->members = mem_array((size_t)size, sizeof *r->members);
    for (int k = 0; k < size; k++) {
        if (k == rank)
            r->place = r->n_members;
        if (k == rank || (r->contributions[k].here && round_meets(group, r, k)))
            r->members[r->n_members++] = k;
    }
    chunks_settle(group, r);
    if (collective_group_size(&r->group, size) == size && !r->with_leaving)
        group->first = r->members[0];
    r->state = ROUND_SETTLED;
}

/* Returns whether all contribute the same kind of thing, and belong together. */
static int check(const struct process_group *group, const struct collective_round *r,
                 struct error *err)
{
    const char *own = group->ends[group->interface.rank].task;
    bool has_root = !r->has_root;
    for (int k = 0; k < group->interface.size; k++) {
        if (r->contributions[k].here && !round_meets(group, r, k))
            return error_set(err, ERR_DATA, "'%s': %s is of another group than %s", r->name,
                             group->ends[k].task, own);
        if (r->contributions[k].here && r->contributions[k].nothing)
            return error_set(err, ERR_DATA, "'%s': %s brings nothing: its input is dead", r->name,
                             group->ends[k].task);
    }
    for (int i = 0; i < r->n_members; i++) {
        int k = r->members[i];
        has_root |= k == r->root;
        if (k == group->interface.rank || r->contributions[k].signature == r->signature)
            continue;
        struct str values = STR_INIT;
        for (int v = 0; v < r->n && v < 8; v++) {
            str_printf(&values, "%s", v ? ", " : "");
            shape_print_typed(&values, r->own[v].type, &r->own[v].shape);
        }
        if (r->n > 8)
            str_printf(&values, " and %d more", r->n - 8);
        error_set(err, ERR_DATA, "'%s': %s brings other values than %s, which has %s", r->name,
                  group->ends[k].task, own, str_text(&values));
        str_release(&values);
        return err->code;
    }
    return has_root ? 0
                    : error_set(err, ERR_DATA, "'%s': the root, member %lld, takes no part",
                                r->name, (long long)r->root);
}

/* ---- its course ---- */

/* It has settled, since now. */
static void begin(struct process_group *group, struct collective_round *r)
{
    struct error err = ERROR_INIT;
    if (FAILPOINT("collective.begin"))
        error_set(&err, ERR_UNAVAILABLE, "failpoint collective.begin");
    if (err.code || r->declined || check(group, r, &err) || contributions_combine(group, r, &err)) {
        round_fail(group, r, &err);
    } else if (r->on_device && r->n_members < group->interface.size) {
        device_sum_to_host(r->on_device);
    } else {
        const struct reduce ready = {.what = REDUCE_READY, .round = r};
        for (int i = 0; i < r->n_members && r->has_late; i++)
            if (i != r->place)
                reduce_send(group, r->members[i], &ready);
        pthread_mutex_lock(&group->lock);
        if (r->state == ROUND_SETTLED) /* else it has been cancelled */
            r->state = ROUND_AGREEING;
        pthread_mutex_unlock(&group->lock);
    }
}

void round_go_on(struct process_group *group, struct collective_round *r)
{
    pthread_mutex_lock(&group->lock);
    bool settles = has_all(group, r);
    if (settles)
        settle(group, r);
    pthread_mutex_unlock(&group->lock);
    if (settles)
        begin(group, r);
    pthread_mutex_lock(&group->lock);
    bool agrees = r->state == ROUND_AGREEING;
    for (int i = 0; agrees && i < r->n_members && r->has_late; i++)
        agrees = i == r->place || r->contributions[r->members[i]].is_ready;
    if (agrees) {
        r->state = ROUND_RUNNING;
        if (r->on_device)
            device_sums_wake(group->sums);
    }
    pthread_mutex_unlock(&group->lock);
    chunks_begin(group, r);
    pthread_mutex_lock(&group->lock);
    if (r->state == ROUND_RUNNING && !r->n_missing)
        r->answered = round_end(group, r);
    pthread_mutex_unlock(&group->lock);
}

void round_tell(struct process_group *group, struct collective_round *r, struct error *err)
{
    if (!err->code)
        contribution_send(group, r);
    if (!err->code && FAILPOINT("collective.bring"))
        error_set(err, ERR_UNAVAILABLE, "failpoint collective.bring");
    pthread_mutex_lock(&group->lock);
    if (round_react(r->state, ROUND_TOLD) == REACT_TAKE)
        r->state = ROUND_CALLED;
    if (!err->code && group->failed.code) {
        *err = group->failed;
        error_waited(err, "'%s'", r->name);
    }
    pthread_mutex_unlock(&group->lock);
    if (err->code)
        round_fail(group, r, err);
    else
        round_go_on(group, r);
}

void rounds_settle(struct process_group *group)
{
    for (;;) {
        pthread_mutex_lock(&group->lock);
        struct collective_round *r = group->rounds;
        while (r && !has_all(group, r))
            r = r->next;
        if (r)
            r->holders++;
        pthread_mutex_unlock(&group->lock);
        if (!r)
            break;
        round_go_on(group, r);
        round_drop(group, r);
    }
}
