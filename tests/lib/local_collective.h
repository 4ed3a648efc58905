/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: a collective among the threads of a process, which has all values in one place. It is
 * the reference for those between processes, and plans are tested with it.
 */
#ifndef TF_TESTS_LIB_LOCAL_COLLECTIVE_H
#define TF_TESTS_LIB_LOCAL_COLLECTIVE_H

#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "exec/step/collective.h"
#include "lib/combine.h"

#define LOCAL_MEMBERS_MAX 64

struct local_part { /* of a member in a round; no waiter: it is not here */
    struct collective_waiter *waiter;
    bool declined;
    struct tensor *values;
    int64_t *rows; /* of the call; NULL: it has none */
    int n;
};

struct local_round {
    char *name;
    struct collective_key key;
    struct collective_group group;
    int size; /* of all members */
    struct collective_schedule schedule;
    int member;                  /* one of the group */
    enum collective_kind *kinds; /* n */
    int n;
    bool has_root;
    int root;
    struct local_part parts[LOCAL_MEMBERS_MAX];
};

static inline void local_part_release(struct local_part *part)
{
    for (int i = 0; i < part->n; i++)
        tensor_release(&part->values[i]);
    mem_free(part->values);
    mem_free(part->rows);
    *part = (struct local_part){0};
}

static inline void local_round_free(struct local_round *round)
{
    for (int k = 0; k < LOCAL_MEMBERS_MAX; k++)
        local_part_release(&round->parts[k]);
    mem_free(round->name);
    mem_free(round->kinds);
    mem_free(round);
}

/* ---- answers ---- */

struct local_outcome {
    struct collective_results results; /* values: n for each member, by rank */
    int n;
    struct error err;
};

/* Opens a reply: counts values and members, which must agree. */
static inline struct local_outcome local_open_reply(const struct local_round *round)
{
    struct local_outcome reply = {.n = -1, .err = ERROR_INIT};
    for (int k = 0; k < LOCAL_MEMBERS_MAX; k++) {
        const struct local_part *part = &round->parts[k];
        if (part->declined)
            error_set(&reply.err, ERR_DATA, "'%s': member %d brings nothing: its input is dead",
                      round->name, k);
        if (!part->waiter)
            continue;
        if (reply.n >= 0 && part->n != reply.n)
            error_set(&reply.err, ERR_DATA, "a member brings %d values, another %d", part->n,
                      reply.n);
        reply.n = part->n;
        reply.results.members++;
    }
    if (reply.n < 0) /* nobody waits */
        reply.n = 0;
    size_t n = (size_t)reply.n * (size_t)reply.results.members;
    reply.results.values = mem_array(n + 1, sizeof *reply.results.values);
    return reply;
}

/* Tells a member its results, and its own share. The waiter may be gone afterwards. */
static inline void local_tell(struct collective_waiter *waiter, const struct local_outcome *reply,
                              int member)
{
    struct collective_results shares = reply->results;
    if (reply->err.code) {
        waiter->done(waiter, NULL, &reply->err);
        return;
    }
    shares.values = reply->results.values + (size_t)member * (size_t)reply->n;
    waiter->done(waiter, &shares, NULL);
}

static inline void local_reply_all(struct local_round *round, struct local_outcome *reply)
{
    int member = 0;
    for (int k = 0; k < LOCAL_MEMBERS_MAX; k++)
        if (round->parts[k].waiter)
            local_tell(round->parts[k].waiter, reply, member++);
    for (int i = 0; i < reply->n * reply->results.members; i++)
        tensor_release(&reply->results.values[i]);
    mem_free(reply->results.values);
    local_round_free(round);
}

/* The members' i-th values, and what they want of them. */
struct collected {
    const struct tensor *values[LOCAL_MEMBERS_MAX];
    int ranks[LOCAL_MEMBERS_MAX];
    int64_t wanted[LOCAL_MEMBERS_MAX];
    struct row_routes routing;
};

static inline void local_collect(const struct local_round *round, int i, struct collected *c)
{
    bool wants = false;
    c->routing = (struct row_routes){.kind = round->kinds[i], .root = -1};
    for (int k = 0; k < LOCAL_MEMBERS_MAX; k++) {
        const struct local_part *part = &round->parts[k];
        if (!part->waiter)
            continue;
        int n = c->routing.n++;
        c->ranks[n] = k;
        if (round->has_root && round->root == k)
            c->routing.root = n;
        c->values[n] = &part->values[i];
        c->wanted[n] = part->rows ? part->rows[i] : 0;
        wants |= part->rows != NULL;
    }
    c->routing.wanted = wants ? c->wanted : NULL;
}

/* Returns whether a value goes by the round's schedule: all members' values must have one type and
 * shape. */
static inline bool local_is_scheduled(const struct local_round *round, const struct collected *c)
{
    for (int k = 0; k < c->routing.n; k++)
        if (c->values[k]->type != c->values[0]->type ||
            !shape_equal(&c->values[k]->shape, &c->values[0]->shape))
            return false;
    return collective_goes_by_schedule(&round->schedule, c->routing.kind, round->has_root,
                                       c->values[0]);
}

static inline void local_combine_by_schedule(const struct local_round *round,
                                             const struct collected *c, struct tensor *result,
                                             struct error *err)
{
    struct sum_schedule schedule = {0};
    int n_parts =
        collective_schedule_parts(&round->schedule, &round->group, round->size, round->member);
    collective_schedule_make(&round->schedule, c->ranks, c->routing.n, &schedule);
    collective_combine_by(&schedule, n_parts, c->routing.kind, c->values, result, err);
    schedule_release(&schedule);
}

/* Combines one value; members with the same result share it. */
static inline void local_combine_value(const struct local_round *round, int i,
                                       struct local_outcome *reply)
{
    struct collected c;
    local_collect(round, i, &c);
    bool differ = round->has_root || collective_parts(c.routing.kind);
    if (round->has_root && c.routing.root < 0)
        error_set(&reply->err, ERR_DATA, "the root, member %d, takes no part", round->root);
    for (int k = 0; k < c.routing.n && !reply->err.code; k++) {
        struct tensor *result = &reply->results.values[k * reply->n + i];
        if (k && !differ)
            tensor_share(result, &reply->results.values[i]);
        else if (local_is_scheduled(round, &c))
            local_combine_by_schedule(round, &c, result, &reply->err);
        else
            collective_combine_for(&c.routing, c.values, k, result, &reply->err);
    }
}

static inline void local_round_conclude(struct local_round *round)
{
    struct local_outcome reply = local_open_reply(round);
    for (int i = 0; i < reply.n && !reply.err.code; i++)
        local_combine_value(round, i, &reply);
    local_reply_all(round, &reply);
}

struct local_group {
    pthread_mutex_t lock; /* guards what follows */
    int n, users;         /* members, and calls that have not returned */
    bool left[LOCAL_MEMBERS_MAX];
    VEC(struct local_round *) rounds;
};

struct local_member {
    struct collective interface; /* first */
    struct local_group *group;
};

/* ---- rounds ---- */

static inline struct local_round *local_find(struct local_group *group,
                                             const struct collective_call *call, int rank)
{
    for (size_t i = 0; i < group->rounds.n; i++) {
        struct local_round *m = group->rounds.items[i];
        if (m->key.step == call->key.step && m->key.iteration == call->key.iteration &&
            collective_group_has(&m->group, m->member, rank) && !strcmp(m->name, call->key.name))
            return m;
    }
    struct local_round *m = mem_alloc(sizeof *m);
    m->name = mem_strdup(call->key.name);
    m->key = call->key;
    m->group = call->group;
    m->member = rank;
    m->size = group->n;
    m->kinds = mem_array((size_t)call->n + 1, sizeof *m->kinds);
    m->n = call->n;
    for (int i = 0; i < call->n; i++)
        m->kinds[i] = call->kinds[i];
    m->has_root = call->has_root;
    m->root = (int)collective_group_rank(&call->group, rank, call->root);
    vec_push(&group->rounds, m);
    return m;
}

static inline bool local_is_complete(const struct local_group *group,
                                     const struct local_round *round)
{
    bool any = false;
    for (int k = 0; k < group->n; k++) {
        const struct local_part *part = &round->parts[k];
        bool is_here = part->waiter || part->declined;
        if (!is_here && !group->left[k] && collective_group_has(&round->group, round->member, k))
            return false;
        any |= is_here;
    }
    return any;
}

/* Takes out a complete round. Call with the lock held. */
static inline struct local_round *local_take_complete(struct local_group *group)
{
    for (size_t i = 0; i < group->rounds.n; i++) {
        struct local_round *round = group->rounds.items[i];
        if (local_is_complete(group, round)) {
            group->rounds.items[i] = vec_pop(&group->rounds);
            return round;
        }
    }
    return NULL;
}

static inline void local_group_release(struct local_group *group)
{
    pthread_mutex_lock(&group->lock);
    bool last = !--group->users;
    pthread_mutex_unlock(&group->lock);
    if (!last)
        return;
    for (size_t i = 0; i < group->rounds.n; i++)
        local_round_free(group->rounds.items[i]);
    vec_release(&group->rounds);
    pthread_mutex_destroy(&group->lock);
    mem_free(group);
}

/* Concludes all complete rounds, and releases the caller's hold on the group. */
static inline void local_conclude_all(struct local_group *group)
{
    for (struct local_round *round = NULL;;) {
        pthread_mutex_lock(&group->lock);
        round = local_take_complete(group);
        pthread_mutex_unlock(&group->lock);
        if (!round)
            break;
        local_round_conclude(round);
    }
    local_group_release(group);
}

/* ---- members ---- */

static inline void local_reduce(struct collective *collective, const struct collective_call *call,
                                struct collective_waiter *waiter)
{
    struct local_group *group = ((struct local_member *)collective)->group;
    pthread_mutex_lock(&group->lock);
    group->users++;
    struct local_round *round = local_find(group, call, collective->rank);
    struct local_part *part = &round->parts[collective->rank];
    BUG_ON(part->waiter);
    round->schedule = call->schedule;
    part->values = mem_array((size_t)call->n + 1, sizeof *part->values);
    part->n = call->n;
    for (int i = 0; i < call->n; i++)
        tensor_share(&part->values[i], &call->values[i]);
    if (call->rows) {
        part->rows = mem_array((size_t)call->n + 1, sizeof *part->rows);
        memcpy(part->rows, call->rows, (size_t)call->n * sizeof *part->rows);
    }
    part->waiter = waiter;
    pthread_mutex_unlock(&group->lock);
    local_conclude_all(group);
}

static inline int local_decline(struct collective *collective, const struct collective_key *key,
                                const struct collective_group *members, struct error *err)
{
    (void)err;
    struct local_group *group = ((struct local_member *)collective)->group;
    const struct collective_call nothing = {.key = *key, .group = *members};
    pthread_mutex_lock(&group->lock);
    group->users++;
    local_find(group, &nothing, collective->rank)->parts[collective->rank].declined = true;
    pthread_mutex_unlock(&group->lock);
    local_conclude_all(group);
    return 0;
}

static inline bool local_is_empty(const struct local_round *round)
{
    for (int k = 0; k < LOCAL_MEMBERS_MAX; k++)
        if (round->parts[k].waiter || round->parts[k].declined)
            return false;
    return true;
}

static inline bool local_cancel(struct collective *collective, struct collective_waiter *waiter)
{
    struct local_group *group = ((struct local_member *)collective)->group;
    bool found = false;
    pthread_mutex_lock(&group->lock);
    for (size_t i = 0; i < group->rounds.n && !found; i++) {
        struct local_round *round = group->rounds.items[i];
        struct local_part *part = &round->parts[collective->rank];
        found = part->waiter == waiter;
        if (!found)
            continue;
        local_part_release(part);
        if (local_is_empty(round)) {
            group->rounds.items[i] = vec_pop(&group->rounds);
            local_round_free(round);
        }
    }
    pthread_mutex_unlock(&group->lock);
    return found;
}

static inline void local_leave(struct collective *collective)
{
    struct local_group *group = ((struct local_member *)collective)->group;
    pthread_mutex_lock(&group->lock);
    group->users++;
    group->left[collective->rank] = true;
    pthread_mutex_unlock(&group->lock);
    local_conclude_all(group);
}

static inline void local_free(struct collective *collective)
{
    struct local_group *group = ((struct local_member *)collective)->group;
    mem_free(collective);
    local_group_release(group);
}

/* Makes n members, at most 64. All must be freed, in any order. */
static inline void collective_local_new(int n, struct collective **members)
{
    struct local_group *group = mem_alloc(sizeof *group);
    BUG_ON(n < 1 || n > LOCAL_MEMBERS_MAX);
    pthread_mutex_init(&group->lock, NULL);
    group->n = group->users = n;
    for (int rank = 0; rank < n; rank++) {
        struct local_member *member = mem_alloc(sizeof *member);
        member->interface = (struct collective){.rank = rank,
                                                .size = n,
                                                .reduce = local_reduce,
                                                .decline = local_decline,
                                                .cancel = local_cancel,
                                                .leave = local_leave,
                                                .free = local_free};
        member->group = group;
        members[rank] = &member->interface;
    }
}

#endif
