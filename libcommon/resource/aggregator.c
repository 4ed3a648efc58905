/* SPDX-License-Identifier: Apache-2.0
 *
 * An aggregator: a list of staged pushes. The list is short: about one push per worker.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "resource/aggregator.h"

struct kept_push {
    struct push_id id;
    struct staged_push staged;
};

struct aggregator {
    const char *name;
    pthread_mutex_t lock; /* guards the members below */
    VEC(struct kept_push) pushes;
};

void staged_release(struct staged_push *staged)
{
    for (int i = 0; i < staged->n; i++)
        tensor_release(&staged->values[i]);
    mem_free(staged->values);
    *staged = (struct staged_push){0};
}

static bool same(const struct push_id *a, const struct push_id *b)
{
    return a->worker == b->worker && a->incarnation == b->incarnation && a->seq == b->seq;
}

static struct kept_push *find(struct aggregator *a, const struct push_id *id)
{
    for (size_t i = 0; i < a->pushes.n; i++)
        if (same(&a->pushes.items[i].id, id))
            return &a->pushes.items[i];
    return NULL;
}

static void *aggregator_create(const char *name)
{
    struct aggregator *a = mem_alloc(sizeof *a);
    a->name = name;
    pthread_mutex_init(&a->lock, NULL);
    return a;
}

static void aggregator_free(void *object)
{
    struct aggregator *a = object;
    for (size_t i = 0; i < a->pushes.n; i++)
        staged_release(&a->pushes.items[i].staged);
    vec_release(&a->pushes);
    pthread_mutex_destroy(&a->lock);
    mem_free(a);
}

/* Shares the values that are there: a push that is being restored has some of them. */
static struct kept_push share_push(const struct push_id *id, const struct tensor *values, int n)
{
    struct kept_push push = {*id, {mem_array((size_t)n + 1, sizeof *values), n}};
    for (int i = 0; i < n; i++)
        if (values[i].buffer)
            tensor_share(&push.staged.values[i], &values[i]);
    return push;
}

void aggregator_push(struct aggregator *a, const struct push_id *id, const struct tensor *values,
                     int n)
{
    struct kept_push push = share_push(id, values, n);
    struct staged_push replaced = {0};
    pthread_mutex_lock(&a->lock);
    struct kept_push *present = find(a, id);
    if (present) {
        replaced = present->staged;
        present->staged = push.staged;
    } else {
        vec_push(&a->pushes, push);
    }
    pthread_mutex_unlock(&a->lock);
    staged_release(&replaced);
}

/* ---- taking ---- */

static int check(struct aggregator *a, struct push_list members, int n_values, struct error *err)
{
    for (int i = 0; i < members.n; i++) {
        const struct push_id *id = &members.ids[i];
        const struct kept_push *push = find(a, id);
        if (!push)
            return error_set(err, ERR_DATA,
                             "step %lld of worker:%lld, incarnation %llx, is not staged in '%s'",
                             (long long)id->seq, (long long)id->worker,
                             (unsigned long long)id->incarnation, a->name);
        if (push->staged.n != n_values)
            return error_set(err, ERR_DATA, "worker:%lld pushed %d values to '%s', not %d",
                             (long long)id->worker, push->staged.n, a->name, n_values);
    }
    return 0;
}

static bool is_obsolete(const struct push_id *id, struct push_list members,
                        struct push_list dropped)
{
    for (int i = 0; i < members.n; i++)
        if (members.ids[i].worker == id->worker && id->seq <= members.ids[i].seq)
            return true;
    for (int i = 0; i < dropped.n; i++)
        if (same(id, &dropped.ids[i]))
            return true;
    return false;
}

int aggregator_take(struct aggregator *a, struct push_list members, struct push_list dropped,
                    int n_values, struct staged_push *staged, struct error *err)
{
    VEC(struct staged_push) gone = VEC_INIT;
    size_t left = 0;
    pthread_mutex_lock(&a->lock);
    int code = check(a, members, n_values, err);
    for (int i = 0; !code && i < members.n; i++) {
        struct kept_push *push = find(a, &members.ids[i]);
        staged[i] = push->staged;
        push->staged = (struct staged_push){0};
    }
    for (size_t i = 0; !code && i < a->pushes.n; i++) {
        struct kept_push *push = &a->pushes.items[i];
        if (is_obsolete(&push->id, members, dropped))
            vec_push(&gone, push->staged);
        else
            a->pushes.items[left++] = *push;
    }
    if (!code)
        a->pushes.n = left;
    pthread_mutex_unlock(&a->lock);
    for (size_t i = 0; i < gone.n; i++)
        staged_release(&gone.items[i]);
    vec_release(&gone);
    return code;
}

/* ---- snapshots ---- */

static void *aggregator_snapshot(void *object)
{
    struct aggregator *a = object, *snapshot = aggregator_create(a->name);
    pthread_mutex_lock(&a->lock);
    vec_each(push, &a->pushes)
        vec_push(&snapshot->pushes, share_push(&push->id, push->staged.values, push->staged.n));
    pthread_mutex_unlock(&a->lock);
    return snapshot;
}

/* ---- saving: "ids" int64[n,4] (worker, incarnation, seq, values), then the values ---- */

static int aggregator_save(const void *pointer, struct resource_sink *sink, struct error *err)
{
    const struct aggregator *a = pointer;
    int64_t *rows = mem_array(a->pushes.n + 1, 4 * sizeof *rows);
    for (size_t i = 0; i < a->pushes.n; i++) {
        const struct kept_push *push = &a->pushes.items[i];
        memcpy(&rows[4 * i],
               (int64_t[]){push->id.worker, (int64_t)push->id.incarnation, push->id.seq,
                           push->staged.n},
               4 * sizeof *rows);
    }
    struct shape shape = shape_matrix((int64_t)a->pushes.n, 4);
    struct tensor table = tensor_borrow(INT64, &shape, rows);
    int code = resource_put(sink, "ids", &table, err);
    mem_free(rows);

    for (size_t i = 0; i < a->pushes.n; i++) {
        const struct staged_push *staged = &a->pushes.items[i].staged;
        for (int k = 0; !code && k < staged->n; k++) {
            char part[64];
            snprintf(part, sizeof part, "push%zu.%d", i, k);
            code = resource_put(sink, part, &staged->values[k], err);
        }
    }
    return code;
}

/* ---- restoring ---- */

static int load_ids(struct aggregator *a, const struct tensor *value, struct error *err)
{
    if (value->type != INT64 || value->shape.rank != 2 || value->shape.dims[1] != 4)
        return error_set(err, ERR_DATA, "%s is no table of pushes", shape_text(&value->shape));
    for (size_t i = 0; i < a->pushes.n; i++)
        staged_release(&a->pushes.items[i].staged);
    a->pushes.n = 0;
    for (const int64_t *row = value->data, *end = row + tensor_count(value); row < end; row += 4) {
        if (row[3] < 0 || row[3] > INT16_MAX)
            return error_set(err, ERR_DATA, "a push of %lld values", (long long)row[3]);
        struct kept_push push = {
            {row[0], (uint64_t)row[1], row[2]},
            {mem_array((size_t)row[3] + 1, sizeof(struct tensor)), (int)row[3]}};
        vec_push(&a->pushes, push);
    }
    return 0;
}

static int aggregator_restore(void *object, const char *part, const struct tensor *value,
                              struct error *err)
{
    struct aggregator *a = object;
    size_t index;
    int i, code = 0;
    pthread_mutex_lock(&a->lock);
    if (!strcmp(part, "ids")) {
        code = load_ids(a, value, err);
    } else if (sscanf(part, "push%zu.%d", &index, &i) == 2 && index < a->pushes.n && i >= 0 &&
               i < a->pushes.items[index].staged.n) {
        struct tensor *to = &a->pushes.items[index].staged.values[i];
        tensor_release(to);
        code = tensor_copy(to, value, err);
    } else {
        code = error_set(err, ERR_DATA, "no such push");
    }
    pthread_mutex_unlock(&a->lock);
    return code;
}

static void aggregator_measure(void *object, struct resource_size *size)
{
    struct aggregator *a = object;
    size->bytes = 0;
    pthread_mutex_lock(&a->lock);
    size->items = (int64_t)a->pushes.n;
    for (size_t i = 0; i < a->pushes.n; i++)
        for (int k = 0; k < a->pushes.items[i].staged.n; k++)
            size->bytes += (int64_t)tensor_bytes(&a->pushes.items[i].staged.values[k]);
    pthread_mutex_unlock(&a->lock);
}

static void aggregator_describe(void *object, struct str *text)
{
    struct resource_size size;
    aggregator_measure(object, &size);
    str_printf(text, "%" PRId64 " pushes, %" PRId64 " bytes", size.items, size.bytes);
}

const struct resource_kind aggregator_kind = {
    .name = "aggregator",
    .create = aggregator_create,
    .free = aggregator_free,
    .snapshot = aggregator_snapshot,
    .save = aggregator_save,
    .restore = aggregator_restore,
    .describe = aggregator_describe,
    .size = aggregator_measure,
};
