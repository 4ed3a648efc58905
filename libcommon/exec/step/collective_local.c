/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives among the threads of a process: a table of meetings that lack members.
 */
#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "exec/step/collective.h"

#define MEMBERS_MAX 64

struct part { /* of a member in a meeting; no waiter: it is not here */
    struct collective_waiter *waiter;
    struct tensor *values;
    int n;
};

struct meeting {
    char *name;
    struct collective_key key;
    enum collective_kind *kinds;
    struct part parts[MEMBERS_MAX];
};

struct group {
    pthread_mutex_t lock; /* guards what follows */
    int n, users;
    bool left[MEMBERS_MAX];
    VEC(struct meeting *) meetings;
};

struct member {
    struct collective interface; /* first */
    struct group *group;
};

/* ---- meetings ---- */

static void part_release(struct part *part)
{
    for (int i = 0; i < part->n; i++)
        tensor_release(&part->values[i]);
    mem_free(part->values);
    *part = (struct part){0};
}

static void meeting_free(struct meeting *meeting)
{
    for (int k = 0; k < MEMBERS_MAX; k++)
        part_release(&meeting->parts[k]);
    mem_free(meeting->name);
    mem_free(meeting->kinds);
    mem_free(meeting);
}

static struct meeting *find(struct group *group, const struct collective_call *call)
{
    for (size_t i = 0; i < group->meetings.n; i++) {
        struct meeting *m = group->meetings.items[i];
        if (m->key.step == call->key.step && m->key.iteration == call->key.iteration &&
            !strcmp(m->name, call->key.name))
            return m;
    }
    struct meeting *m = mem_alloc(sizeof *m);
    m->name = mem_strdup(call->key.name);
    m->key = call->key;
    m->kinds = mem_array((size_t)call->n + 1, sizeof *m->kinds);
    memcpy(m->kinds, call->kinds, (size_t)call->n * sizeof *m->kinds);
    vec_push(&group->meetings, m);
    return m;
}

static bool is_complete(const struct group *group, const struct meeting *meeting)
{
    bool any = false;
    for (int k = 0; k < group->n; k++) {
        if (!meeting->parts[k].waiter && !group->left[k])
            return false;
        any |= meeting->parts[k].waiter != NULL;
    }
    return any;
}

/* With the lock: takes out what is complete. */
static struct meeting *take_complete(struct group *group)
{
    for (size_t i = 0; i < group->meetings.n; i++) {
        struct meeting *meeting = group->meetings.items[i];
        if (is_complete(group, meeting)) {
            group->meetings.items[i] = vec_pop(&group->meetings);
            return meeting;
        }
    }
    return NULL;
}

static int combine(const struct meeting *meeting, int value, struct tensor *result,
                   struct error *err)
{
    const struct tensor *values[MEMBERS_MAX];
    int n = 0;
    for (int k = 0; k < MEMBERS_MAX; k++)
        if (meeting->parts[k].waiter && value < meeting->parts[k].n)
            values[n++] = &meeting->parts[k].values[value];
    return collective_combine(meeting->kinds[value], values, n, result, err);
}

static void conclude(struct meeting *meeting)
{
    struct error err = ERROR_INIT;
    int n = -1, members = 0;
    for (int k = 0; k < MEMBERS_MAX; k++) {
        const struct part *part = &meeting->parts[k];
        members += part->waiter != NULL;
        if (part->waiter && n >= 0 && part->n != n)
            error_set(&err, ERR_DATA, "a member brings %d values, another %d", part->n, n);
        n = part->waiter ? part->n : n;
    }
    struct tensor *results = mem_array((size_t)n + 1, sizeof *results);
    for (int i = 0; i < n && !err.code; i++)
        combine(meeting, i, &results[i], &err);
    for (int k = 0; k < MEMBERS_MAX; k++) {
        struct collective_waiter *waiter = meeting->parts[k].waiter;
        if (waiter) /* it may be gone once it was told */
            waiter->done(waiter, results, members, err.code ? &err : NULL);
    }
    for (int i = 0; i < n; i++)
        tensor_release(&results[i]);
    mem_free(results);
    meeting_free(meeting);
}

static void conclude_all(struct group *group)
{
    for (struct meeting *meeting = NULL;;) {
        pthread_mutex_lock(&group->lock);
        meeting = take_complete(group);
        pthread_mutex_unlock(&group->lock);
        if (!meeting)
            break;
        conclude(meeting);
    }
}

/* ---- members ---- */

static void local_reduce(struct collective *collective, const struct collective_call *call,
                         struct collective_waiter *waiter)
{
    struct group *group = ((struct member *)collective)->group;
    pthread_mutex_lock(&group->lock);
    struct part *part = &find(group, call)->parts[collective->rank];
    BUG_ON(part->waiter);
    part->values = mem_array((size_t)call->n + 1, sizeof *part->values);
    part->n = call->n;
    for (int i = 0; i < call->n; i++)
        tensor_share(&part->values[i], &call->values[i]);
    part->waiter = waiter;
    pthread_mutex_unlock(&group->lock);
    conclude_all(group);
}

static bool local_cancel(struct collective *collective, struct collective_waiter *waiter)
{
    struct group *group = ((struct member *)collective)->group;
    bool found = false;
    pthread_mutex_lock(&group->lock);
    for (size_t i = 0; i < group->meetings.n && !found; i++) {
        struct part *part = &group->meetings.items[i]->parts[collective->rank];
        found = part->waiter == waiter;
        if (found)
            part_release(part);
    }
    pthread_mutex_unlock(&group->lock);
    return found;
}

static void local_leave(struct collective *collective)
{
    struct group *group = ((struct member *)collective)->group;
    pthread_mutex_lock(&group->lock);
    group->left[collective->rank] = true;
    pthread_mutex_unlock(&group->lock);
    conclude_all(group);
}

static void local_free(struct collective *collective)
{
    struct group *group = ((struct member *)collective)->group;
    pthread_mutex_lock(&group->lock);
    bool last = !--group->users;
    pthread_mutex_unlock(&group->lock);
    mem_free(collective);
    if (!last)
        return;
    for (size_t i = 0; i < group->meetings.n; i++)
        meeting_free(group->meetings.items[i]);
    vec_release(&group->meetings);
    pthread_mutex_destroy(&group->lock);
    mem_free(group);
}

void collective_local_new(int n, struct collective **members)
{
    struct group *group = mem_alloc(sizeof *group);
    BUG_ON(n < 1 || n > MEMBERS_MAX);
    pthread_mutex_init(&group->lock, NULL);
    group->n = group->users = n;
    for (int rank = 0; rank < n; rank++) {
        struct member *member = mem_alloc(sizeof *member);
        member->interface =
            (struct collective){rank, n, local_reduce, local_cancel, local_leave, local_free};
        member->group = group;
        members[rank] = &member->interface;
    }
}
