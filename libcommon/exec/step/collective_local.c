/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives among the threads of a process: a table of rounds that lack members.
 */
#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "exec/step/collective_local_private.h"

struct local_group {
    pthread_mutex_t lock; /* guards what follows */
    int n, users;         /* members, and calls that have not returned */
    bool left[MEMBERS_MAX];
    VEC(struct local_round *) rounds;
};

struct local_member {
    struct collective interface; /* first */
    struct local_group *group;
};

/* ---- rounds ---- */

static struct local_round *find(struct local_group *group, const struct collective_call *call,
                                int rank)
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

static bool is_complete(const struct local_group *group, const struct local_round *round)
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
static struct local_round *take_complete(struct local_group *group)
{
    for (size_t i = 0; i < group->rounds.n; i++) {
        struct local_round *round = group->rounds.items[i];
        if (is_complete(group, round)) {
            group->rounds.items[i] = vec_pop(&group->rounds);
            return round;
        }
    }
    return NULL;
}

static void group_release(struct local_group *group)
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
static void conclude_all(struct local_group *group)
{
    for (struct local_round *round = NULL;;) {
        pthread_mutex_lock(&group->lock);
        round = take_complete(group);
        pthread_mutex_unlock(&group->lock);
        if (!round)
            break;
        local_round_conclude(round);
    }
    group_release(group);
}

/* ---- members ---- */

static void local_reduce(struct collective *collective, const struct collective_call *call,
                         struct collective_waiter *waiter)
{
    struct local_group *group = ((struct local_member *)collective)->group;
    pthread_mutex_lock(&group->lock);
    group->users++;
    struct local_round *round = find(group, call, collective->rank);
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
    conclude_all(group);
}

static int local_decline(struct collective *collective, const struct collective_key *key,
                         const struct collective_group *members, struct error *err)
{
    (void)err;
    struct local_group *group = ((struct local_member *)collective)->group;
    const struct collective_call nothing = {.key = *key, .group = *members};
    pthread_mutex_lock(&group->lock);
    group->users++;
    find(group, &nothing, collective->rank)->parts[collective->rank].declined = true;
    pthread_mutex_unlock(&group->lock);
    conclude_all(group);
    return 0;
}

static bool is_empty(const struct local_round *round)
{
    for (int k = 0; k < MEMBERS_MAX; k++)
        if (round->parts[k].waiter || round->parts[k].declined)
            return false;
    return true;
}

static bool local_cancel(struct collective *collective, struct collective_waiter *waiter)
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
        if (is_empty(round)) {
            group->rounds.items[i] = vec_pop(&group->rounds);
            local_round_free(round);
        }
    }
    pthread_mutex_unlock(&group->lock);
    return found;
}

static void local_leave(struct collective *collective)
{
    struct local_group *group = ((struct local_member *)collective)->group;
    pthread_mutex_lock(&group->lock);
    group->users++;
    group->left[collective->rank] = true;
    pthread_mutex_unlock(&group->lock);
    conclude_all(group);
}

static void local_free(struct collective *collective)
{
    struct local_group *group = ((struct local_member *)collective)->group;
    mem_free(collective);
    group_release(group);
}

void collective_local_new(int n, struct collective **members)
{
    struct local_group *group = mem_alloc(sizeof *group);
    BUG_ON(n < 1 || n > MEMBERS_MAX);
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
