/* SPDX-License-Identifier: Apache-2.0
 *
 * What a checkpoint contains of a clock, and how a clock describes itself.
 */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/time.h"
#include "resource/clock_private.h"

/* ---- snapshots ---- */

/* Sets a worker with a state back to that state: it repeats later pushes. */
static void as_of_state(struct clock_member *member)
{
    member->state = PUSH_NONE;
    member->last_seq = member->kept_seq;
}

void *clock_snapshot(void *object)
{
    struct clock *clock = object, *snapshot = clock_kind.create(clock->name);
    pthread_mutex_lock(&clock->lock);
    snapshot->policy = clock->policy;
    snapshot->version = clock->version;
    snapshot->arrivals = clock->arrivals;
    snapshot->workers = clock->workers;
    vec_each(member, &clock->members)
        vec_push(&snapshot->members, *member);
    vec_each(push, &clock->dropped)
        vec_push(&snapshot->dropped, *push);
    if (clock->keeps)
        vec_each(member, &snapshot->members)
            as_of_state(member);
    pthread_mutex_unlock(&clock->lock);
    return snapshot;
}

/* ---- saving ----
 *
 * "version" int64[2]: version, arrivals. "policy": its text, as bytes. "members" int64[n,16]: one
 * row each. "dropped" int64[n,3]: pushes that shards have not been told of yet. A round under way
 * is saved as its pushes, which are then waiting again. */

#define COLUMNS 16

void clock_forget_waiting(struct clock *clock)
{
    for (size_t i = 0; i < clock->members.n; i++) {
        as_of_state(&clock->members.items[i]);
        clock->members.items[i].joined = false;
    }
}

static int put_table(struct resource_sink *sink, const char *part, void *values, size_t rows,
                     int columns, struct error *err)
{
    struct shape shape = shape_matrix((int64_t)rows, columns);
    struct tensor table = tensor_borrow(INT64, &shape, values);
    return resource_put(sink, part, &table, err);
}

int clock_save(const void *pointer, struct resource_sink *sink, struct error *err)
{
    const struct clock *clock = pointer;
    int64_t numbers[] = {clock->version, clock->arrivals, clock->workers};
    int code = put_table(sink, "version", numbers, 1, 3, err);
    if (!code && clock->policy.kind) {
        struct str text = STR_INIT;
        policy_print(&text, &clock->policy);
        struct shape shape = shape_vector((int64_t)text.n);
        struct tensor bytes = tensor_borrow(UINT8, &shape, text.data);
        code = resource_put(sink, "policy", &bytes, err);
        str_release(&text);
    }
    if (!code) {
        int64_t *rows = mem_array(clock->members.n + 1, COLUMNS * sizeof *rows);
        for (size_t i = 0; i < clock->members.n; i++) {
            const struct clock_member *m = &clock->members.items[i];
            const int64_t values[COLUMNS] = {
                m->worker,       (int64_t)m->incarnation,
                m->joined,       m->left || m->returns,
                m->clock,        m->last_seq,
                m->last_counted, m->state != PUSH_NONE,
                m->push.seq,     (int64_t)m->push.incarnation,
                m->version,      m->arrival,
                m->pushed,       m->counted,
                m->late,         m->dropped,
            };
            memcpy(&rows[i * COLUMNS], values, sizeof values);
        }
        code = put_table(sink, "members", rows, clock->members.n, COLUMNS, err);
        mem_free(rows);
    }
    _Static_assert(sizeof(struct push_id) == 3 * sizeof(int64_t), "a push's ID is a row");
    return code ? code : put_table(sink, "dropped", clock->dropped.items, clock->dropped.n, 3, err);
}

/* ---- restoring ---- */

int clock_restore(void *object, const char *part, const struct tensor *value, struct error *err)
{
    struct clock *clock = object;
    const int64_t *row = value->data;
    int64_t columns = value->shape.rank == 2 && value->type == INT64 ? value->shape.dims[1] : -1;
    int64_t rows = columns < 0 ? 0 : value->shape.dims[0];
    int code = 0;
    pthread_mutex_lock(&clock->lock);
    clock->is_restored = !clock->is_configured;
    if (!strcmp(part, "policy") && value->type == UINT8) {
        char *text = mem_strndup(value->data, (size_t)tensor_count(value));
        code = policy_parse(&clock->policy, text, err);
        mem_free(text);
    } else if (!strcmp(part, "policy")) {
        code = error_set(err, ERR_DATA, "is no policy");
    } else if (!strcmp(part, "version") && columns == 3 && rows == 1) {
        clock->version = row[0];
        clock->arrivals = row[1];
        clock->workers = row[2] >= 0 && row[2] <= INT32_MAX ? (int)row[2] : 0;
    } else if (!strcmp(part, "members") && columns == COLUMNS) {
        clock->members.n = 0;
        for (int64_t i = 0; i < rows; i++, row += COLUMNS)
            *clock_member(clock, row[0], true) =
                (struct clock_member){.worker = row[0],
                                      .incarnation = (uint64_t)row[1],
                                      .joined = row[2] != 0,
                                      .left = row[3] != 0,
                                      .clock = row[4],
                                      .last_seq = row[5],
                                      .kept_seq = row[5],
                                      .last_counted = row[6] != 0,
                                      .state = row[7] ? PUSH_WAITS : PUSH_NONE,
                                      .push = {row[0], (uint64_t)row[9], row[8]},
                                      .version = row[10],
                                      .arrival = row[11],
                                      .pushed = row[12],
                                      .counted = row[13],
                                      .late = row[14],
                                      .dropped = row[15],
                                      .seen = time_now()};
        if (clock->keeps)
            clock_forget_waiting(clock);
    } else if (!strcmp(part, "dropped") && columns == 3) {
        clock->dropped.n = 0;
        for (int64_t i = 0; i < rows; i++, row += 3)
            vec_push(&clock->dropped, ((struct push_id){row[0], (uint64_t)row[1], row[2]}));
    } else {
        code = error_set(err, ERR_DATA, "%s is no such part of a clock",
                         shape_text_typed(value->type, &value->shape));
    }
    clock_unlock(clock);
    return code;
}

/* ---- descriptions ---- */

void clock_print_missing(const struct clock *clock, struct str *text)
{
    size_t before = text->n;
    for (size_t i = 0; i < clock->members.n && !clock->under_way; i++) {
        const struct clock_member *member = &clock->members.items[i];
        if (!(clock->asks ? !clock_rests(member) : clock_misses(clock, member)))
            continue;
        str_printf(text, "%sworker:%" PRId64, text->n == before ? "" : ", ", member->worker);
        if (member->joined)
            str_printf(text, " (last seen %.1f s ago)", time_now() - member->seen);
        else
            str_append(text, " (has not come yet)");
    }
    if (text->n == before)
        str_append(text, "the update");
    str_printf(text, " in round %" PRId64, clock->version + 1);
}

bool clock_has_one_version(struct clock *clock)
{
    pthread_mutex_lock(&clock->lock);
    const struct policy *policy = &clock->policy;
    bool has = policy->kind && policy->kind->one_version && !policy->number;
    pthread_mutex_unlock(&clock->lock);
    return has;
}

bool clock_was_joined(struct clock *clock)
{
    pthread_mutex_lock(&clock->lock);
    bool was_joined = clock->was_joined;
    pthread_mutex_unlock(&clock->lock);
    return was_joined;
}

int clock_workers(struct clock *clock, struct clock_member *workers, int max)
{
    int64_t most = 0;
    pthread_mutex_lock(&clock->lock);
    int n = (int)clock->members.n;
    for (int i = 0; i < n; i++)
        most = clock->members.items[i].clock > most ? clock->members.items[i].clock : most;
    for (int i = 0; i < n && i < max; i++) {
        workers[i] = clock->members.items[i];
        workers[i].behind = most - workers[i].clock;
        workers[i].seen = workers[i].joined ? time_now() - workers[i].seen : 0;
    }
    pthread_mutex_unlock(&clock->lock);
    return n;
}

void clock_describe(void *object, struct str *text)
{
    struct clock *clock = object;
    int64_t left = 0;
    pthread_mutex_lock(&clock->lock);
    for (size_t i = 0; i < clock->members.n; i++)
        left += clock->members.items[i].left;
    policy_print(text, &clock->policy);
    str_printf(text, " version %" PRId64 ", %zu workers, %" PRId64 " left", clock->version,
               clock->members.n, left);
    pthread_mutex_unlock(&clock->lock);
}
