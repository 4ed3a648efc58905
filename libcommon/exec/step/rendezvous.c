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

/* A table of values that nobody has asked for yet and of receivers that nothing has come for yet.
 * Callbacks are made without the lock. */
#define N_BUCKETS 256

struct local_item {
    struct rendezvous_key key;
    struct rendezvous_value value;    /* of no type: dead */
    struct rendezvous_waiter *waiter; /* NULL: the value is here and waits */
    struct local_item *next;
};

struct local_rendezvous {
    struct rendezvous interface; /* first */
    pthread_mutex_t lock;        /* guards all that follows */
    struct local_item *buckets[N_BUCKETS];
    struct error reason; /* of the abort; no code: there was none */
};

static struct local_item **find(struct local_rendezvous *local, const struct rendezvous_key *key)
{
    uint64_t hash = hash_bytes(key->tensor_name, strlen(key->tensor_name), key->iteration);
    struct local_item **at = &local->buckets[hash % N_BUCKETS];
    while (*at && ((*at)->key.iteration != key->iteration ||
                   strcmp((*at)->key.tensor_name, key->tensor_name) != 0))
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

static void item_free(struct local_item *item)
{
    rendezvous_value_release(&item->value);
    mem_free(item);
}

static int local_send(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                      struct rendezvous_value *value, struct error *err)
{
    struct local_rendezvous *local = (struct local_rendezvous *)rendezvous;
    struct local_item *met = NULL;
    int code = 0;
    pthread_mutex_lock(&local->lock);
    struct local_item **at = find(local, key);
    if (local->reason.code) {
        *err = local->reason;
        code = err->code;
    } else if (*at && (*at)->waiter) {
        met = unlink_item(at);
    } else if (*at) {
        code =
            error_set(err, ERR_INTERNAL, "'%s' is sent twice in one iteration", key->tensor_name);
    } else {
        struct local_item *item = add(at, key);
        if (value) {
            item->value = *value;
            *value = (struct rendezvous_value){0};
        }
    }
    pthread_mutex_unlock(&local->lock);
    if (met) {
        met->waiter->arrived(met->waiter, value, NULL);
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
    struct error failure = ERROR_INIT;
    struct local_item *met = NULL;
    pthread_mutex_lock(&local->lock);
    struct local_item **at = find(local, key);
    if (local->reason.code)
        failure = local->reason;
    else if (*at && !(*at)->waiter)
        met = unlink_item(at);
    else if (*at)
        error_set(&failure, ERR_INTERNAL, "'%s' is received twice in one iteration",
                  key->tensor_name);
    else
        add(at, key)->waiter = waiter;
    pthread_mutex_unlock(&local->lock);
    if (failure.code)
        waiter->arrived(waiter, NULL, &failure);
    if (met) {
        bool is_dead = met->value.tensor.type == DTYPE_INVALID;
        waiter->arrived(waiter, is_dead ? NULL : &met->value, NULL);
        item_free(met);
    }
}

static void local_abort(struct rendezvous *rendezvous, const struct error *reason)
{
    struct local_rendezvous *local = (struct local_rendezvous *)rendezvous;
    struct rendezvous_waiter *waiting = NULL;
    pthread_mutex_lock(&local->lock);
    bool first = !local->reason.code;
    for (int i = 0; first && i < N_BUCKETS; i++) {
        while (local->buckets[i]) {
            struct local_item *item = unlink_item(&local->buckets[i]);
            if (item->waiter) {
                item->waiter->next = waiting;
                waiting = item->waiter;
            }
            item_free(item);
        }
    }
    if (first)
        local->reason = *reason;
    pthread_mutex_unlock(&local->lock);
    while (waiting) {
        struct rendezvous_waiter *next = waiting->next;
        waiting->arrived(waiting, NULL, reason);
        waiting = next;
    }
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

static void local_free(struct rendezvous *rendezvous)
{
    struct local_rendezvous *local = (struct local_rendezvous *)rendezvous;
    for (int i = 0; i < N_BUCKETS; i++)
        while (local->buckets[i])
            item_free(unlink_item(&local->buckets[i]));
    pthread_mutex_destroy(&local->lock);
    mem_free(local);
}

struct rendezvous *rendezvous_local_new(void)
{
    struct local_rendezvous *local = mem_alloc(sizeof *local);
    local->interface = (struct rendezvous){local_send,    local_receive, local_abort,
                                           local_aborted, local_free,    true};
    pthread_mutex_init(&local->lock, NULL);
    return &local->interface;
}
