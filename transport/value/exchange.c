/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/value/exchange.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "graph/task.h"
#include "transport/value/exchange_private.h"

struct exchanges *exchanges_new(void)
{
    struct exchanges *all = mem_alloc(sizeof *all);
    pthread_mutex_init(&all->lock, NULL);
    return all;
}

void exchanges_free(struct exchanges *all)
{
    if (!all)
        return;
    pthread_mutex_destroy(&all->lock);
    mem_free(all);
}

uint64_t exchanges_dropped(const struct exchanges *all)
{
    return atomic_load(&all->dropped);
}

void exchange_release(struct value_exchange *exchange)
{
    if (!exchange || atomic_fetch_sub(&exchange->holders, 1) > 1)
        return;
    for (size_t i = 0; i < exchange->routes.n; i++)
        peer_release(exchange->routes.items[i].peer);
    for (size_t i = 0; i < exchange->steps.n; i++)
        remote_release(exchange->steps.items[i]);
    vec_release(&exchange->routes);
    vec_release(&exchange->steps);
    vec_release(&exchange->expected);
    map_release(&exchange->names);
    map_release(&exchange->devices);
    arena_release(&exchange->arena);
    pthread_mutex_destroy(&exchange->lock);
    mem_free(exchange);
}

static struct value_exchange **bucket(struct exchanges *all, uint64_t session)
{
    struct value_exchange **at = &all->buckets[session % EXCHANGE_BUCKETS];
    while (*at && (*at)->session != session)
        at = &(*at)->next;
    return at;
}

struct value_exchange *exchange_find(struct exchanges *all, uint64_t session)
{
    pthread_mutex_lock(&all->lock);
    struct value_exchange *exchange = *bucket(all, session);
    if (exchange)
        atomic_fetch_add(&exchange->holders, 1);
    pthread_mutex_unlock(&all->lock);
    return exchange;
}

/* ---- opening ---- */

static size_t add_route(struct value_exchange *exchange, const char *device)
{
    struct error ignored = ERROR_INIT;
    char task[TASK_TEXT_BYTES] = "";
    int64_t known;
    if (map_get(&exchange->devices, device, &known))
        return (size_t)known;
    task_of_device(task, device, &ignored); /* a device of no task is never reached */
    size_t i = 0;
    while (i < exchange->routes.n && strcmp(exchange->routes.items[i].task, task) != 0)
        i++;
    if (i == exchange->routes.n)
        vec_push(&exchange->routes, ((struct route){arena_strdup(&exchange->arena, task), NULL}));
    map_put(&exchange->devices, arena_strdup(&exchange->arena, device), (int64_t)i);
    return i;
}

static void expect(struct value_exchange *exchange, const struct node *recv, const char *key,
                   const struct node_output *output)
{
    const char *name = arena_strdup(&exchange->arena, key);
    struct expected_value e = {name, *output,
                               add_route(exchange, node_string(recv, "send_device"))};
    map_put(&exchange->names, name, (int64_t)exchange->expected.n);
    vec_push(&exchange->expected, e);
}

struct value_exchange *exchange_open(struct exchanges *all, uint64_t session, const char *task,
                                     const struct graph *graph)
{
    struct value_exchange *exchange = mem_alloc(sizeof *exchange);
    exchange->all = all;
    exchange->session = session;
    atomic_init(&exchange->holders, 1);
    exchange->task = arena_strdup(&exchange->arena, task);
    pthread_mutex_init(&exchange->lock, NULL);
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        if (node_is(node, "Send"))
            add_route(exchange, node_string(node, "recv_device"));
        if (!node_is(node, "Recv"))
            continue;
        /* By itself, or with others of its group, as bytes. */
        const struct node_output bytes = {.type = UINT8, .shape = SHAPE_ANY};
        const char *group = node_group(node);
        expect(exchange, node, node_string(node, "tensor_name"), &node->outputs[0]);
        if (group && !map_get(&exchange->names, group, NULL))
            expect(exchange, node, group, &bytes);
    }
    pthread_mutex_lock(&all->lock);
    struct value_exchange **at = bucket(all, session);
    bool is_new = !*at;
    if (is_new)
        *at = exchange;
    pthread_mutex_unlock(&all->lock);
    if (!is_new)
        exchange_release(exchange);
    return is_new ? exchange : NULL;
}

void exchange_route(struct value_exchange *exchange, const char *task, struct peer *peer)
{
    pthread_mutex_lock(&exchange->lock);
    for (size_t i = 0; i < exchange->routes.n; i++) {
        struct route *route = &exchange->routes.items[i];
        if (strcmp(route->task, task) != 0)
            continue;
        peer_release(route->peer);
        route->peer = peer_retain(peer);
    }
    pthread_mutex_unlock(&exchange->lock);
}

int exchange_lacks(struct value_exchange *exchange, const char **task)
{
    int n = 0;
    pthread_mutex_lock(&exchange->lock);
    for (size_t i = 0; i < exchange->routes.n; i++) {
        const struct route *route = &exchange->routes.items[i];
        if (!route->peer && strcmp(route->task, exchange->task) != 0 && !n++)
            *task = route->task;
    }
    pthread_mutex_unlock(&exchange->lock);
    return n;
}

bool exchange_is_without(struct value_exchange *exchange, const char *task)
{
    bool without = false;
    pthread_mutex_lock(&exchange->lock);
    for (size_t i = 0; i < exchange->routes.n; i++)
        without = without || (!exchange->routes.items[i].peer &&
                              !strcmp(exchange->routes.items[i].task, task));
    pthread_mutex_unlock(&exchange->lock);
    return without && strcmp(task, exchange->task) != 0;
}

void exchange_forget(struct value_exchange *exchange, uint64_t step)
{
    VEC(struct peer *) peers = VEC_INIT;
    pthread_mutex_lock(&exchange->lock);
    for (size_t i = 0; i < exchange->routes.n; i++)
        if (exchange->routes.items[i].peer)
            vec_push(&peers, peer_retain(exchange->routes.items[i].peer));
    pthread_mutex_unlock(&exchange->lock);
    for (size_t i = 0; i < peers.n; i++) {
        flow_forget(peers.items[i], exchange->session, step);
        peer_release(peers.items[i]);
    }
    vec_release(&peers);
}

void exchange_close(struct value_exchange *exchange)
{
    if (!exchange)
        return;
    pthread_mutex_lock(&exchange->all->lock);
    struct value_exchange **at = bucket(exchange->all, exchange->session);
    *at = exchange->next;
    pthread_mutex_unlock(&exchange->all->lock);
    exchange_forget(exchange, 0);
    exchange_release(exchange);
}

/* ---- steps ---- */

int exchange_find_route(struct value_exchange *exchange, const char *device, struct peer **peer,
                        struct error *err)
{
    int64_t index;
    int code = 0;
    *peer = NULL;
    pthread_mutex_lock(&exchange->lock);
    if (!map_get(&exchange->devices, device, &index)) {
        code = error_set(err, ERR_INTERNAL, "there is no way to '%s'", device);
    } else {
        const struct route *route = &exchange->routes.items[index];
        if (route->peer)
            *peer = peer_retain(route->peer);
        else if (strcmp(route->task, exchange->task) != 0)
            code = error_set(err, ERR_UNAVAILABLE, "there is no link to %s", route->task);
    }
    pthread_mutex_unlock(&exchange->lock);
    return code;
}

struct remote **exchange_step(struct value_exchange *exchange, uint64_t step)
{
    for (size_t i = 0; i < exchange->steps.n; i++)
        if (exchange->steps.items[i]->step == step)
            return &exchange->steps.items[i];
    return NULL;
}

const char *exchange_find_name(const struct value_exchange *exchange, const char *name)
{
    int64_t index;
    return map_get(&exchange->names, name, &index) ? exchange->expected.items[index].name : NULL;
}

void exchange_end_step(struct remote *remote, bool failed)
{
    struct value_exchange *exchange = remote->exchange;
    pthread_mutex_lock(&exchange->lock);
    struct remote **at = exchange_step(exchange, remote->step);
    *at = vec_pop(&exchange->steps);
    pthread_mutex_unlock(&exchange->lock);
    if (failed) /* else others may still ask for what it sent */
        exchange_forget(exchange, remote->step);
    remote_release(remote);
}

struct remote *exchange_make_step(struct value_exchange *exchange, uint64_t step)
{
    vec_push(&exchange->steps,
             remote_new(exchange, step, exchange->expected.n + exchange->routes.n));
    return exchange->steps.items[exchange->steps.n - 1];
}

int exchange_begin(struct value_exchange *exchange, uint64_t step, struct rendezvous **rendezvous,
                   struct error *err)
{
    int code = 0;
    pthread_mutex_lock(&exchange->lock);
    if (step <= exchange->begun) {
        code = error_set(err, ERR_PROTOCOL, "step %" PRIu64 " comes after step %" PRIu64, step,
                         exchange->begun);
    } else {
        struct remote **early = exchange_step(exchange, step);
        *rendezvous =
            &remote_retain(early ? *early : exchange_make_step(exchange, step))->interface;
        exchange->begun = step;
    }
    pthread_mutex_unlock(&exchange->lock);
    return code;
}
