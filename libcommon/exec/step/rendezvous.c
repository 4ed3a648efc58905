/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/rendezvous.h"

#include <pthread.h>
#include <string.h>

#include "base/container_of.h"
#include "base/map.h"
#include "base/memory.h"

void rendezvous_value_release(struct rendezvous_value *value)
{
    tensor_release(&value->tensor);
    device_point_release(&value->at);
    if (value->source)
        value->source->release(value->source, false);
    if (value->released)
        value->released(value);
    *value = (struct rendezvous_value){0};
}

/* ---- for kernels ---- */

int rendezvous_prepare(struct kernel_setup *setup)
{
    const struct node *node = setup->node;
    struct rendezvous_key *key = setup->state = mem_alloc(sizeof *key);
    *key = (struct rendezvous_key){.tensor_name = node_string(node, "tensor_name"),
                                   .send_device = node_string(node, "send_device"),
                                   .recv_device = node_string(node, "recv_device"),
                                   .priority = node_priority(node)};
    return 0;
}

struct rendezvous_key rendezvous_key_of(const struct kernel_call *call)
{
    struct rendezvous_key key = *(const struct rendezvous_key *)call->state;
    key.iteration = call->iteration;
    return key;
}

struct rendezvous *rendezvous_of(struct kernel_call *call)
{
    struct rendezvous *rendezvous = call->step->rendezvous;
    if (!rendezvous)
        kernel_fail(call, "nothing connects it to '%s': all parts of a graph run together",
                    node_string(call->node, call->n_in ? "recv_device" : "send_device"));
    return rendezvous;
}

struct receive_call {
    struct rendezvous_waiter waiter;
    struct kernel_call *call;
    int (*take)(struct kernel_call *call, const struct rendezvous_value *value);
};

static void arrived(struct rendezvous_waiter *waiter, const struct rendezvous_value *value,
                    const struct error *failure)
{
    struct receive_call *r = CONTAINER_OF(waiter, struct receive_call, waiter);
    struct kernel_call *call = r->call;
    int code = failure ? failure->code : 0;
    if (failure)
        *call->err = *failure;
    else if (value && call->n_out == 1 && value->tensor.type != call->node->outputs[0].type)
        code = kernel_fail(call, "was sent %s", dtype_name(value->tensor.type));
    else if (value)
        code = r->take(call, value);
    mem_free(r);
    kernel_done(call, code);
}

int rendezvous_receive(struct kernel_call *call,
                       int (*take)(struct kernel_call *call, const struct rendezvous_value *value))
{
    struct rendezvous *rendezvous = rendezvous_of(call);
    struct rendezvous_key key = rendezvous_key_of(call);
    if (!rendezvous)
        return call->err->code;
    struct receive_call *r = mem_alloc(sizeof *r);
    *r = (struct receive_call){.waiter.arrived = arrived, .call = call, .take = take};
    rendezvous->receive(rendezvous, &key, &r->waiter);
    return KERNEL_PENDING;
}

/* ---- the rendezvous of executors in one process ---- */

/* A table of values, or their sources, without a receiver and of receivers without a value.
 * Callbacks are called without the lock. */
#define BUCKETS_MAX ((size_t)4096)

struct local_item {
    struct rendezvous_key key;
    struct rendezvous_value value;    /* no type: dead, or announced */
    struct rendezvous_waiter *waiter; /* NULL: the value, or its source, is here */
    bool is_asked;                    /* the source was asked, for the waiter */
    struct local_item *next;
};

struct local_rendezvous {
    struct rendezvous interface; /* first */
    pthread_mutex_t lock;        /* guards the members below */
    struct local_item **buckets;
    size_t n_buckets;
    struct error reason; /* of the abort; no code: there was none */
};

static struct local_item **find(struct local_rendezvous *local, const struct rendezvous_key *key)
{
    uint64_t hash = hash_bytes(key->tensor_name, strlen(key->tensor_name), key->iteration);
    struct local_item **at = &local->buckets[hash & (local->n_buckets - 1)];
    while (*at && ((*at)->key.iteration != key->iteration ||
                   ((*at)->key.tensor_name != key->tensor_name &&
                    strcmp((*at)->key.tensor_name, key->tensor_name) != 0)))
        at = &(*at)->next;
    return at;
}

static struct local_item *add(struct local_item **at, const struct rendezvous_key *key)
{
    struct local_item *item = mem_alloc(sizeof *item);
    item->key = *key;
    item->next = *at;
    return *at = item;
}

static struct local_item *unlink_item(struct local_item **at)
{
    struct local_item *item = *at;
    *at = item->next;
    return item;
}

/* Calls the waiter with the value, which is dead if it has no type. */
static void give(struct rendezvous_waiter *waiter, const struct rendezvous_value *value)
{
    waiter->arrived(waiter, value && value->tensor.type != DTYPE_INVALID ? value : NULL, NULL);
}

static void item_free(struct local_item *item)
{
    rendezvous_value_release(&item->value);
    mem_free(item);
}

/* Takes everything out of the table; with the lock held. */
static struct local_item *take_all(struct local_rendezvous *local)
{
    struct local_item *all = NULL;
    for (size_t i = 0; i < local->n_buckets; i++)
        while (local->buckets[i]) {
            struct local_item *item = unlink_item(&local->buckets[i]);
            item->next = all;
            all = item;
        }
    return all;
}

static void free_all(struct local_item *item, const struct error *reason)
{
    while (item) {
        struct local_item *next = item->next;
        if (item->waiter && reason)
            item->waiter->arrived(item->waiter, NULL, reason);
        item_free(item);
        item = next;
    }
}

static int local_send(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                      struct rendezvous_value *value, struct error *err)
{
    struct local_rendezvous *local = (struct local_rendezvous *)rendezvous;
    struct rendezvous_source *asked = NULL;
    struct local_item *met = NULL;
    bool is_granted = value && value->was_announced;
    int code = 0;
    pthread_mutex_lock(&local->lock);
    struct local_item **at = find(local, key);
    if (local->reason.code) {
        *err = local->reason;
        code = err->code;
    } else if (*at && (*at)->waiter && (*at)->is_asked == is_granted) {
        asked = value ? value->source : NULL;
        if (asked)
            (*at)->is_asked = true;
        else
            met = unlink_item(at);
    } else if (*at || is_granted) {
        code = error_set(err, ERR_INTERNAL,
                         is_granted ? "'%s' was sent without its grant"
                                    : "'%s' is sent twice in one iteration",
                         key->tensor_name);
    } else {
        struct local_item *item = add(at, key);
        if (value) {
            item->value = *value;
            *value = (struct rendezvous_value){0};
        }
    }
    pthread_mutex_unlock(&local->lock);
    if (asked) {
        value->source = NULL;
        asked->release(asked, true);
    }
    if (met) {
        give(met->waiter, value);
        item_free(met);
    }
    if (value)
        rendezvous_value_release(value);
    return code;
}

static void local_receive(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                          struct rendezvous_waiter *waiter)
{
    struct local_rendezvous *local = (struct local_rendezvous *)rendezvous;
    struct rendezvous_source *source = NULL;
    struct error failure = ERROR_INIT;
    struct local_item *met = NULL;
    pthread_mutex_lock(&local->lock);
    struct local_item **at = find(local, key), *item = *at;
    if (local->reason.code) {
        failure = local->reason;
    } else if (item && item->value.source) {
        source = item->value.source;
        *item = (struct local_item){
            .key = *key, .waiter = waiter, .is_asked = true, .next = item->next};
    } else if (item && !item->waiter) {
        met = unlink_item(at);
    } else if (item) {
        error_set(&failure, ERR_INTERNAL, "'%s' is received twice in one iteration",
                  key->tensor_name);
    } else {
        add(at, key)->waiter = waiter;
    }
    pthread_mutex_unlock(&local->lock);
    if (failure.code)
        waiter->arrived(waiter, NULL, &failure);
    if (source)
        source->release(source, true);
    if (met) {
        give(waiter, &met->value);
        item_free(met);
    }
}

static void local_abort(struct rendezvous *rendezvous, const struct error *reason)
{
    struct local_rendezvous *local = (struct local_rendezvous *)rendezvous;
    struct local_item *all = NULL;
    pthread_mutex_lock(&local->lock);
    if (!local->reason.code) {
        all = take_all(local);
        local->reason = *reason;
    }
    pthread_mutex_unlock(&local->lock);
    free_all(all, reason);
}

static bool local_aborted(struct rendezvous *rendezvous, struct error *reason)
{
    struct local_rendezvous *local = (struct local_rendezvous *)rendezvous;
    pthread_mutex_lock(&local->lock);
    if (local->reason.code)
        *reason = local->reason;
    bool aborted = local->reason.code != 0;
    pthread_mutex_unlock(&local->lock);
    return aborted;
}

static bool local_find(struct rendezvous *rendezvous,
                       bool (*is_it)(void *context, const struct rendezvous_key *key,
                                     bool is_received),
                       void *context)
{
    struct local_rendezvous *local = (struct local_rendezvous *)rendezvous;
    bool found = false;
    pthread_mutex_lock(&local->lock);
    for (size_t i = 0; i < local->n_buckets && !found; i++)
        for (const struct local_item *item = local->buckets[i]; item && !found; item = item->next)
            found = is_it(context, &item->key, item->waiter);
    pthread_mutex_unlock(&local->lock);
    return found;
}

static void local_free(struct rendezvous *rendezvous)
{
    struct local_rendezvous *local = (struct local_rendezvous *)rendezvous;
    free_all(take_all(local), NULL); /* nobody waits any more */
    pthread_mutex_destroy(&local->lock);
    mem_free(local->buckets);
    mem_free(local);
}

struct rendezvous *rendezvous_local_new(size_t n_keys)
{
    struct local_rendezvous *local = mem_alloc(sizeof *local);
    local->interface = (struct rendezvous){local_send, local_receive, local_abort, local_aborted,
                                           local_free, true,          local_find,  NULL};
    local->n_buckets = n_keys ? 8 : 256;
    while (local->n_buckets < n_keys && local->n_buckets < BUCKETS_MAX)
        local->n_buckets *= 2;
    local->buckets = mem_array(local->n_buckets, sizeof(struct local_item *));
    pthread_mutex_init(&local->lock, NULL);
    return &local->interface;
}
