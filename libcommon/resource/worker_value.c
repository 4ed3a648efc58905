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

struct worker_values {
    pthread_mutex_t lock;          /* guards `given` */
    VEC(struct given_value) given; /* by worker */
};

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
    vec_each(given, &values->given)
        tensor_release(&given->value);
    vec_release(&values->given);
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

/* Returns whether the worker has, or takes over, the value of the other. */
static bool takes_over(int64_t worker, int64_t other, int64_t n)
{
    return other == worker || (n > 0 && other >= n && other % n == worker);
}

int worker_value_take(struct worker_values *values, int64_t worker, int64_t n, struct tensor *value,
                      struct error *err)
{
    bool is_there;
    int code = 0, found = 0;
    *value = (struct tensor)TENSOR_INIT;
    pthread_mutex_lock(&values->lock);
    struct tensor *terms = mem_array(values->given.n + 1, sizeof *terms), sum;
    vec_each(given, &values->given)
        if (takes_over(worker, given->worker, n))
            terms[found++] = given->value;
    size_t left = 0, at = place_of(values, worker, &is_there);
    if (found > is_there) { /* their sum, in order, becomes the worker's own */
        for (int i = 0; i < found && !code; i++)
            if (terms[0].type != terms[i].type || !shape_equal(&terms[0].shape, &terms[i].shape) ||
                !collective_can_add(COLLECTIVE_SUM, terms[0].type))
                code = error_set(err, ERR_DATA, "workers have %s and %s, of which there is no sum",
                                 shape_text_typed(terms[0].type, &terms[0].shape),
                                 shape_text_typed(terms[i].type, &terms[i].shape));
        if (!code && !(code = tensor_alloc(&sum, terms[0].type, &terms[0].shape, err))) {
            collective_sum_tensors(terms, found, 0, &sum);
            vec_each(given, &values->given)
                if (takes_over(worker, given->worker, n))
                    tensor_release(&given->value);
                else
                    values->given.items[left++] = *given;
            values->given.n = left;
            put(values, worker, sum);
        }
    }
    at = place_of(values, worker, &is_there);
    if (!code && is_there)
        tensor_share(value, &values->given.items[at].value);
    pthread_mutex_unlock(&values->lock);
    mem_free(terms);
    return code;
}

/* ---- checkpoints: a part for each worker, its number ---- */

static void *values_snapshot(void *object)
{
    struct worker_values *values = object, *snapshot = values_create(NULL);
    pthread_mutex_lock(&values->lock);
    vec_each(from, &values->given) {
        struct given_value given = {.worker = from->worker};
        tensor_share(&given.value, &from->value);
        vec_push(&snapshot->given, given);
    }
    pthread_mutex_unlock(&values->lock);
    return snapshot;
}

static int values_save(const void *pointer, struct resource_sink *sink, struct error *err)
{
    const struct worker_values *values = pointer;
    int code = 0;
    for (size_t i = 0; i < values->given.n && !code; i++) {
        char part[32];
        snprintf(part, sizeof part, "%" PRId64, values->given.items[i].worker);
        code = resource_put(sink, part, &values->given.items[i].value, err);
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
                                                .save = values_save,
                                                .restore = values_restore,
                                                .describe = values_describe,
                                                .size = values_measure};
