/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: a collective among the threads of a process, which has all values in one place. It is
 * what those between processes are measured by, and what plans are tested with.
 */
#ifndef TF_TESTS_LIB_LOCAL_COLLECTIVE_H
#define TF_TESTS_LIB_LOCAL_COLLECTIVE_H

#include <pthread.h>
#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "base/vec.h"
#include "exec/device/deferred.h"
#include "exec/step/collective.h"
#include "exec/step/copy_out.h"
#include "lib/combine.h"

#define LOCAL_MEMBERS_MAX 64

struct part_copy;

struct local_part { /* of a member in a round; no waiter: it is not here */
    struct collective_waiter *waiter;
    bool declined;
    struct tensor *values;
    int64_t *rows; /* of the call; NULL: it has none */
    int n;
    struct device_point at; /* of the values */
    struct pool *pool, *host_pool;
    struct part_copy *copy; /* of them, for a round in host memory */
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
    atomic_int n_copying; /* parts, and who begins with them */
};

struct part_copy {
    struct copy_out copy; /* to: an array of its own */
    struct local_round *round;
    struct error err; /* why there is none */
};

static inline void local_part_release(struct local_part *part)
{
    if (part->copy) {
        copy_out_release(&part->copy->copy);
        mem_free(part->copy->copy.to);
        mem_free(part->copy);
    }
    for (int i = 0; i < part->n; i++)
        tensor_release(&part->values[i]);
    mem_free(part->values);
    mem_free(part->rows);
    device_point_release(&part->at);
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

/* How many values there are, and members. */
static inline struct local_outcome local_open_answer(const struct local_round *round)
{
    struct local_outcome answer = {.n = -1, .err = ERROR_INIT};
    for (int k = 0; k < LOCAL_MEMBERS_MAX; k++) {
        const struct local_part *part = &round->parts[k];
        if (part->declined)
            error_set(&answer.err, ERR_DATA, "'%s': member %d brings nothing: its input is dead",
                      round->name, k);
        if (!part->waiter)
            continue;
        if (answer.n >= 0 && part->n != answer.n)
            error_set(&answer.err, ERR_DATA, "a member brings %d values, another %d", part->n,
                      answer.n);
        answer.n = part->n;
        answer.results.members++;
    }
    if (answer.n < 0) /* nobody waits */
        answer.n = 0;
    size_t n = (size_t)answer.n * (size_t)answer.results.members;
    answer.results.values = mem_array(n + 1, sizeof *answer.results.values);
    return answer;
}

/* Those of the member, and its own share: the waiter may be gone once it was told. */
static inline void local_tell(struct collective_waiter *waiter, const struct local_outcome *answer,
                              int member)
{
    struct collective_results shares = answer->results;
    if (answer->err.code) {
        waiter->done(waiter, NULL, &answer->err);
        return;
    }
    shares.values = answer->results.values + (size_t)member * (size_t)answer->n;
    waiter->done(waiter, &shares, NULL);
}

static inline void local_answer_all(struct local_round *round, struct local_outcome *answer)
{
    int member = 0;
    for (int k = 0; k < LOCAL_MEMBERS_MAX; k++)
        if (round->parts[k].waiter)
            local_tell(round->parts[k].waiter, answer, member++);
    for (int i = 0; i < answer->n * answer->results.members; i++)
        tensor_release(&answer->results.values[i]);
    mem_free(answer->results.values);
    device_point_release(&answer->results.at);
    local_round_free(round);
}

/* What the members have brought as the i-th, and want of it. */
struct collected {
    const struct tensor *values[LOCAL_MEMBERS_MAX];
    int ranks[LOCAL_MEMBERS_MAX];
    int64_t wanted[LOCAL_MEMBERS_MAX];
    struct collective_routing routing;
};

static inline void local_collect(const struct local_round *round, int i, struct collected *c)
{
    bool wants = false;
    c->routing = (struct collective_routing){.kind = round->kinds[i], .root = -1};
    for (int k = 0; k < LOCAL_MEMBERS_MAX; k++) {
        const struct local_part *part = &round->parts[k];
        if (!part->waiter)
            continue;
        int n = c->routing.n++;
        c->ranks[n] = k;
        if (round->has_root && round->root == k)
            c->routing.root = n;
        c->values[n] = part->copy ? &part->copy->copy.to[i] : &part->values[i];
        c->wanted[n] = part->rows ? part->rows[i] : 0;
        wants |= part->rows != NULL;
    }
    c->routing.wanted = wants ? c->wanted : NULL;
}

/* Whether it goes by the round's schedule, as it does where none of the members has another kind of
 * value. */
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

/* Of one value; who gets the same shares it. */
static inline void local_combine_value(const struct local_round *round,
                                       const struct collective_memory *memory, int i,
                                       struct local_outcome *answer)
{
    struct collected c;
    local_collect(round, i, &c);
    bool differ = round->has_root || collective_parts(c.routing.kind);
    if (round->has_root && c.routing.root < 0)
        error_set(&answer->err, ERR_DATA, "the root, member %d, takes no part", round->root);
    for (int k = 0; k < c.routing.n && !answer->err.code; k++) {
        struct tensor *result = &answer->results.values[k * answer->n + i];
        if (k && !differ)
            tensor_share(result, &answer->results.values[i]);
        else if (!memory && local_is_scheduled(round, &c))
            local_combine_by_schedule(round, &c, result, &answer->err);
        else
            collective_combine_for(memory, &c.routing, c.values, k, result, &answer->err);
    }
}

static inline void local_combine(const struct local_round *round,
                                 const struct collective_memory *memory,
                                 struct local_outcome *answer)
{
    for (int i = 0; i < answer->n && !answer->err.code; i++)
        local_combine_value(round, memory, i, answer);
}

/* ---- on a device ---- */

/* Rows that are cut lie where kernels of a device need not be able to add; and nothing is added for
 * who brings nothing. */
static inline bool local_is_for_host(const struct local_round *round)
{
    bool parts = round->has_root || round->schedule.kind != SCHEDULE_DIRECT;
    for (int k = 0; k < LOCAL_MEMBERS_MAX; k++)
        parts |= round->parts[k].declined;
    for (int i = 0; i < round->n && !parts; i++)
        parts = collective_parts(round->kinds[i]);
    return parts;
}

/* That has all values; NULL: none has, or it does not add. */
static inline struct device *local_device_of(const struct local_round *round)
{
    struct device *device = NULL;
    if (local_is_for_host(round))
        return NULL;
    for (int k = 0; k < LOCAL_MEMBERS_MAX; k++) {
        const struct local_part *part = &round->parts[k];
        if (!part->waiter)
            continue;
        if (!part->at.device || (device && device != part->at.device))
            return NULL;
        device = part->at.device;
    }
    return device && device->sum ? device : NULL;
}

static inline const struct local_part *local_first_part(const struct local_round *round)
{
    int k = 0;
    while (!round->parts[k].waiter)
        k++;
    return &round->parts[k];
}

/* The compute queue waits for all, and `block` gets the fault of the least rank that has one. */
static inline int local_join(const struct local_round *round, struct device *device,
                             struct step_block *block, struct error *err)
{
    const struct local_part *first = local_first_part(round);
    device->wait(device, QUEUE_COMPUTE, first->at.ready);
    int code = device->copy(device, &block->fault, device_point_fault(&first->at),
                            sizeof block->fault, err);
    for (const struct local_part *part = first + 1;
         !code && part < round->parts + LOCAL_MEMBERS_MAX; part++)
        if (part->waiter)
            code = device_point_join(&part->at, block, err);
    return code;
}

/* Of results: the compute queue of a device that has `sum`, and a pool of its memory. */
struct point_memory {
    struct device *device;
    struct pool *pool;
};

static inline int local_alloc(void *context, enum dtype type, const struct shape *shape,
                              struct tensor *t, struct error *err)
{
    const struct point_memory *memory = context;
    struct buffer *buffer = pool_alloc(memory->pool, (size_t)shape_bytes(shape, type));
    if (!buffer)
        return error_set(err, ERR_OS, "no memory for %s%s", shape_text_typed(type, shape),
                         mem_limit_text());
    *t = (struct tensor){.type = type, .shape = *shape, .data = buffer->data, .buffer = buffer};
    return 0;
}

static inline int local_copy(void *context, void *to, const void *from, size_t bytes,
                             struct error *err)
{
    const struct point_memory *memory = context;
    return memory->device->copy(memory->device, to, from, bytes, err);
}

static inline int local_sum(void *context, const struct collective_terms *terms, void *sum,
                            int64_t count, struct error *err)
{
    const struct point_memory *memory = context;
    return memory->device->sum(memory->device, terms, sum, count, err);
}

static inline void local_conclude_on(struct device *device, struct local_round *round)
{
    struct local_outcome answer = local_open_answer(round);
    struct device_point *at = &answer.results.at;
    struct point_memory there = {device, local_first_part(round)->pool};
    const struct collective_memory memory = {&there, local_alloc, local_copy, local_sum};
    thread_enter_device(device, 1);
    at->device = device;
    at->block = pool_alloc(there.pool, sizeof(struct step_block));
    if (!at->block)
        error_set(&answer.err, ERR_OS, "no memory for what is reduced%s", mem_limit_text());
    if (!answer.err.code && !local_join(round, device, at->block->data, &answer.err))
        local_combine(round, &memory, &answer);
    at->ready = device->record(device, QUEUE_COMPUTE, false);
    local_answer_all(round, &answer);
}

/* ---- on the host ---- */

static inline void local_conclude_on_host(struct local_round *round)
{
    struct local_outcome answer = local_open_answer(round);
    for (int k = 0; k < LOCAL_MEMBERS_MAX && !answer.err.code; k++)
        if (round->parts[k].copy)
            answer.err = round->parts[k].copy->err;
    local_combine(round, NULL, &answer);
    local_answer_all(round, &answer);
}

static inline void local_count_copied(struct local_round *round)
{
    if (atomic_fetch_sub(&round->n_copying, 1) == 1)
        local_conclude_on_host(round);
}

static inline void local_copied(struct copy_out *copy, const struct error *failure)
{
    struct part_copy *own = CONTAINER_OF(copy, struct part_copy, copy);
    if (failure)
        own->err = *failure;
    local_count_copied(own->round);
}

static inline void local_begin_copy(struct local_round *round, struct local_part *part)
{
    struct part_copy *own = part->copy = mem_alloc(sizeof *own);
    own->round = round;
    own->err = error_none();
    own->copy = (struct copy_out){.at = part->at,
                                  .from = part->values,
                                  .to = mem_array((size_t)part->n + 1, sizeof *own->copy.to),
                                  .n = part->n,
                                  .done = local_copied};
    part->at = (struct device_point){0};
    thread_enter_device(own->copy.at.device, 1);
    if (copy_out_enqueue(&own->copy, part->host_pool, &own->err))
        return;
    atomic_fetch_add(&round->n_copying, 1);
    copy_out_notify(&own->copy);
}

static inline void local_round_conclude(struct local_round *round)
{
    struct device *device = local_device_of(round);
    if (device) {
        local_conclude_on(device, round);
        return;
    }
    atomic_store(&round->n_copying, 1);
    for (int k = 0; k < LOCAL_MEMBERS_MAX; k++)
        if (round->parts[k].waiter && round->parts[k].at.device)
            local_begin_copy(round, &round->parts[k]);
    local_count_copied(round);
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

/* With the lock: takes out what is complete. */
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

/* The caller's part of the group is released. */
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
    part->at = call->at;
    part->pool = call->pool;
    part->host_pool = call->host_pool;
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

/* n members, at most 64. All are freed, in any order.
 *
 * Values of devices are taken. If all are in the memory of one device that can add, so are the
 * results, and nothing of the host waits; a fault that a member's kernels have left is left in the
 * step blocks of all. Else they meet in host memory, and a fault fails the call of all members, in
 * the name of its node. So the plans of members on devices stay until the steps of all are over. */
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
                                                .free = local_free,
                                                .takes_devices = true};
        member->group = group;
        members[rank] = &member->interface;
    }
}

#endif
