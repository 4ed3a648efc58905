/* SPDX-License-Identifier: Apache-2.0 */
#include "resource/worker_value.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/vec.h"
#include "collective/sum.h"

struct given_value {
    int64_t worker;
    struct tensor value; /* a share */
};

typedef VEC(struct given_value) given_vec;

struct worker_values {
    pthread_mutex_t lock; /* guards the members below */
    given_vec given;      /* by worker */
};

static void release_all(given_vec *given)
{
    for (size_t i = 0; i < given->n; i++)
        tensor_release(&given->items[i].value);
    vec_release(given);
}

static void *values_create(const char *name)
{
    (void)name;
    struct worker_values *values = mem_alloc(sizeof *values);
    pthread_mutex_init(&values->lock, NULL);
    return values;
}

static void values_free(void *object)
{
    struct worker_values *values = object;
    release_all(&values->given);
    pthread_mutex_destroy(&values->lock);
    mem_free(values);
}

/* Returns the index of the worker's value, or where it would be inserted. */
static size_t place_of(const struct worker_values *values, int64_t worker, bool *is_there)
{
    size_t at = 0;
    while (at < values->given.n && values->given.items[at].worker < worker)
        at++;
    *is_there = at < values->given.n && values->given.items[at].worker == worker;
    return at;
}

/* Takes ownership of the share. Call it with the lock held. */
static void put(struct worker_values *values, int64_t worker, struct tensor value)
{
    bool is_there;
    size_t at = place_of(values, worker, &is_there);
    if (is_there) {
        tensor_release(&values->given.items[at].value);
    } else {
        vec_push(&values->given, ((struct given_value){0}));
        for (size_t i = values->given.n - 1; i > at; i--)
            values->given.items[i] = values->given.items[i - 1];
    }
    values->given.items[at] = (struct given_value){worker, value};
}

void worker_value_give(struct worker_values *values, int64_t worker, const struct tensor *value)
{
    struct tensor share;
    tensor_share(&share, value);
    pthread_mutex_lock(&values->lock);
    put(values, worker, share);
    pthread_mutex_unlock(&values->lock);
}

/* ---- taking ---- */

int worker_value_take(struct worker_values *values, int64_t worker, int64_t n, struct tensor *value,
                      struct error *err)
{
    bool is_there;
    int code = 0, found = 0;
    *value = (struct tensor)TENSOR_INIT;
    pthread_mutex_lock(&values->lock);
    size_t *which = mem_array(values->given.n + 1, sizeof *which);
    for (size_t i = 0; i < values->given.n; i++) {
        int64_t other = values->given.items[i].worker;
        if (other == worker || (n > 0 && other >= n && other % n == worker))
            which[found++] = i;
    }
    if (found && (found > 1 || values->given.items[which[0]].worker != worker)) {
        /* Replace n of the values by their sum, in order, as the worker's own. */
        const struct tensor *first = &values->given.items[which[0]].value;
        const void **data = mem_array((size_t)found, sizeof *data);
        struct tensor sum = TENSOR_INIT;
        code = 0;
        for (int i = 0; i < found && !code; i++) {
            data[i] = values->given.items[which[i]].value.data;
            const struct tensor *other = &values->given.items[which[i]].value;
            if (first->type != other->type || !shape_equal(&first->shape, &other->shape) ||
                !collective_can_add(COLLECTIVE_SUM, first->type))
                code = error_set(err, ERR_DATA, "workers have %s and %s, of which there is no sum",
                                 shape_text_typed(first->type, &first->shape),
                                 shape_text_typed(other->type, &other->shape));
        }
        if (!code && !(code = tensor_alloc(&sum, first->type, &first->shape, err))) {
            const struct collective_terms terms = {first->type, data, found, 0};
            collective_sum(&terms, sum.data, NULL, tensor_count(first));
            size_t left = 0;
            for (size_t i = 0, next = 0; i < values->given.n; i++) {
                if (next < (size_t)found && which[next] == i) {
                    next++;
                    tensor_release(&values->given.items[i].value);
                } else {
                    values->given.items[left++] = values->given.items[i];
                }
            }
            values->given.n = left;
            put(values, worker, sum);
        }
        mem_free(data);
    }
    size_t at = place_of(values, worker, &is_there);
    if (!code && is_there)
        tensor_share(value, &values->given.items[at].value);
    pthread_mutex_unlock(&values->lock);
    mem_free(which);
    return code;
}

/* ---- checkpoints: a part for each worker, its number ---- */

static void *values_snapshot(void *object)
{
    struct worker_values *values = object;
    given_vec *snapshot = mem_alloc(sizeof *snapshot);
    pthread_mutex_lock(&values->lock);
    for (size_t i = 0; i < values->given.n; i++) {
        struct given_value given = {.worker = values->given.items[i].worker};
        tensor_share(&given.value, &values->given.items[i].value);
        vec_push(snapshot, given);
    }
    pthread_mutex_unlock(&values->lock);
    return snapshot;
}

static void values_free_snapshot(void *pointer)
{
    release_all(pointer);
    mem_free(pointer);
}

static int values_save(const void *pointer, struct resource_sink *sink, struct error *err)
{
    const given_vec *snapshot = pointer;
    int code = 0;
    for (size_t i = 0; i < snapshot->n && !code; i++) {
        char part[32];
        snprintf(part, sizeof part, "%" PRId64, snapshot->items[i].worker);
        code = resource_put(sink, part, &snapshot->items[i].value, err);
    }
    return code;
}

static int values_restore(void *object, const char *part, const struct tensor *value,
                          struct error *err)
{
    struct worker_values *values = object;
    struct tensor copy = TENSOR_INIT;
    int64_t worker;
    if (!str_to_int64(part, &worker) || worker < 0)
        return error_set(err, ERR_DATA, "'%s' is no worker", part);
    if (tensor_copy(&copy, value, err))
        return err->code;
    pthread_mutex_lock(&values->lock);
    put(values, worker, copy);
    pthread_mutex_unlock(&values->lock);
    return 0;
}

static void values_measure(void *object, struct resource_size *size)
{
    struct worker_values *values = object;
    *size = (struct resource_size){0};
    pthread_mutex_lock(&values->lock);
    for (size_t i = 0; i < values->given.n; i++)
        size->bytes += (int64_t)tensor_bytes(&values->given.items[i].value);
    size->items = (int64_t)values->given.n;
    pthread_mutex_unlock(&values->lock);
}

static void values_describe(void *object, struct str *text)
{
    struct resource_size size;
    values_measure(object, &size);
    str_printf(text, "values of %" PRId64 " workers, %" PRId64 " bytes", size.items, size.bytes);
}

const struct resource_kind worker_value_kind = {.name = "worker_value",
                                                .create = values_create,
                                                .free = values_free,
                                                .snapshot = values_snapshot,
                                                .free_snapshot = values_free_snapshot,
                                                .save = values_save,
                                                .restore = values_restore,
                                                .describe = values_describe,
                                                .size = values_measure};
