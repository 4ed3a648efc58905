/* SPDX-License-Identifier: Apache-2.0
 *
 * The rendezvous of one step over several processes is a local one (exec/step/rendezvous.h), where
 * values meet their receivers, and which sends the values of others to their tasks; a value that a
 * peer announces has the announcement as its source.
 *
 * The lock of an exchange is not held while a waiter or a peer is called.
 */
#include "transport/value/exchange.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/vec.h"
#include "graph/task.h"

#define EXCHANGE_BUCKETS 64

struct route {
    const char *task;
    struct peer *peer; /* held; NULL: not there yet */
};

/* A value that may come. */
struct expected_value {
    const char *name;
    struct node_output output;
    size_t route; /* of the sender */
};

/* The source of a value that a peer sends once it is granted. */
struct announcement {
    struct rendezvous_source source; /* first */
    struct peer *peer;               /* held */
    struct value_id id;              /* the key is a copy, which outlives the exchange */
};

/* Held by the step, until rendezvous->free, and by the exchange. */
struct remote {
    struct rendezvous *rendezvous; /* its owner is this */
    struct rendezvous local;       /* its functions as of a local one */
    struct value_exchange *exchange;
    uint64_t step;
    atomic_int holders;
};

struct value_exchange {
    struct exchanges *all;
    uint64_t session;
    atomic_int holders;
    const char *task;          /* this task */
    struct arena arena;        /* of the texts */
    struct map names, devices; /* indices in `expected` and in `routes` */
    VEC(struct expected_value) expected;
    struct value_exchange *next;

    pthread_mutex_t lock; /* guards the members below */
    VEC(struct route) routes;
    VEC(struct remote *) steps; /* held */
    uint64_t begun;             /* the largest id */
};

struct exchanges {
    pthread_mutex_t lock; /* guards the buckets */
    struct value_exchange *buckets[EXCHANGE_BUCKETS];
    atomic_uint_fast64_t dropped;
};

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

static struct remote *remote_retain(struct remote *remote)
{
    atomic_fetch_add(&remote->holders, 1);
    return remote;
}

static void remote_release(struct remote *remote)
{
    if (atomic_fetch_sub(&remote->holders, 1) > 1)
        return;
    remote->local.free(remote->rendezvous);
    mem_free(remote);
}

static void exchange_release(struct value_exchange *exchange)
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

/* Held for the caller; NULL: there is none. */
static struct value_exchange *exchange_find(struct exchanges *all, uint64_t session)
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
    size_t i = vec_find(&exchange->routes, task);
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
    graph_each(node, graph) {
        if (node_is(node, "Send"))
            add_route(exchange, node_string(node, "recv_device"));
        if (!node_is(node, "Recv"))
            continue;
        /* A value arrives by itself, or as bytes with the others of its group. */
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
    vec_each(route, &exchange->routes)
        if (!strcmp(route->task, task)) {
            peer_release(route->peer);
            route->peer = peer_retain(peer);
        }
    pthread_mutex_unlock(&exchange->lock);
}

const char *exchange_lacks(struct value_exchange *exchange, const char *task)
{
    const char *lacks = NULL;
    pthread_mutex_lock(&exchange->lock);
    vec_each(route, &exchange->routes)
        if (!lacks && !route->peer && strcmp(route->task, exchange->task) != 0 &&
            (!task || !strcmp(route->task, task)))
            lacks = route->task;
    pthread_mutex_unlock(&exchange->lock);
    return lacks;
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

/* ---- arrivals at a step ---- */

/* With the lock: finds the step; NULL: it is not there. */
static struct remote **exchange_step(struct value_exchange *exchange, uint64_t step)
{
    for (size_t i = 0; i < exchange->steps.n; i++)
        if (exchange->steps.items[i]->step == step)
            return &exchange->steps.items[i];
    return NULL;
}

/* A value of a peer (NULL: dead), or its announcement. `charged`: its bytes of the peer's credit,
 * which are returned when it is taken; 0 with `granted`. */
struct arrival {
    struct peer *peer;
    const char *key;
    uint64_t iteration, charged;
    bool granted, is_announced;
    const struct tensor *value;
};

static bool is_aborted(struct remote *remote)
{
    struct error reason;
    return remote->local.aborted(remote->rendezvous, &reason);
}

static void return_credit(const struct rendezvous_value *value)
{
    flow_return(value->owner, value->charged);
    peer_release(value->owner);
}

static void end_announcement(struct rendezvous_source *source, bool is_wanted)
{
    struct announcement *announced = (struct announcement *)source;
    if (is_wanted)
        flow_grant(announced->peer, &announced->id);
    peer_release(announced->peer);
    mem_free((char *)(uintptr_t)announced->id.key);
    mem_free(announced);
}

/* A peer may send what cannot be taken because the step has ended. */
static int take_in(struct remote *remote, const struct arrival *arrival, struct error *err)
{
    const struct rendezvous_key key = {.tensor_name = arrival->key,
                                       .iteration = arrival->iteration};
    struct rendezvous_value value = {.was_announced = arrival->granted};
    struct error failure = ERROR_INIT;
    if (arrival->is_announced) {
        struct announcement *announced = mem_alloc(sizeof *announced);
        announced->source.release = end_announcement;
        announced->peer = peer_retain(arrival->peer);
        announced->id = (struct value_id){remote->exchange->session, remote->step,
                                          mem_strdup(arrival->key), arrival->iteration, 0};
        value.source = &announced->source;
    }
    if (arrival->value)
        tensor_share(&value.tensor, arrival->value);
    if (arrival->charged) {
        value.released = return_credit;
        value.owner = peer_retain(arrival->peer);
        value.charged = arrival->charged;
    }
    int code = remote->local.send(remote->rendezvous, &key, &value, &failure);
    return code && !is_aborted(remote) ? error_set(err, ERR_PROTOCOL, "%s", failure.text) : 0;
}

/* ---- the rendezvous of a step ---- */

/* Finds the peer of a device, held for the caller; NULL: the device is of this task. */
static int exchange_find_route(struct value_exchange *exchange, const char *device,
                               struct peer **peer, struct error *err)
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

/* "W/read/Send_3" is the Send of W/read. */
static void print_key(const char *key, struct str *out)
{
    const char *send = strstr(key, "/Send_");
    str_printf(out, "'%.*s'", send ? (int)(send - key) : (int)strlen(key), key);
}

static int remote_send(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                       struct rendezvous_value *value, struct error *err)
{
    struct remote *remote = rendezvous->owner;
    struct peer *peer = NULL;
    int code = rendezvous->aborted(rendezvous, err)
                   ? err->code
                   : exchange_find_route(remote->exchange, key->recv_device, &peer, err);
    if (!code && !peer)
        return remote->local.send(rendezvous, key, value, err);
    struct value_id id = {remote->exchange->session, remote->step, key->tensor_name, key->iteration,
                          key->priority};
    if (!code && (code = flow_send(peer, &id, value ? &value->tensor : NULL, err))) {
        struct str text = STR_INIT;
        struct error cause = *err;
        print_key(key->tensor_name, &text);
        error_set(err, code, "%.800s, sending %s", cause.text, str_text(&text));
        str_release(&text);
    }
    peer_release(peer);
    if (value)
        rendezvous_value_release(value);
    return code;
}

static void remote_free(struct rendezvous *rendezvous)
{
    struct remote *remote = rendezvous->owner;
    struct value_exchange *exchange = remote->exchange;
    pthread_mutex_lock(&exchange->lock);
    struct remote **at = exchange_step(exchange, remote->step);
    *at = vec_pop(&exchange->steps);
    pthread_mutex_unlock(&exchange->lock);
    if (is_aborted(remote)) /* else peers may still grant what it announced */
        exchange_forget(exchange, remote->step);
    remote_release(remote);
    remote_release(remote);
}

/* With the lock: finds or creates the step. */
static struct remote *get_step(struct value_exchange *exchange, uint64_t step)
{
    struct remote **at = exchange_step(exchange, step);
    if (at)
        return *at;
    struct remote *remote = mem_alloc(sizeof *remote);
    remote->rendezvous = rendezvous_local_new(exchange->expected.n + exchange->routes.n);
    remote->local = *remote->rendezvous;
    remote->rendezvous->owner = remote;
    remote->rendezvous->send = remote_send;
    remote->rendezvous->free = remote_free;
    remote->rendezvous->takes_devices = false;
    remote->exchange = exchange;
    remote->step = step;
    atomic_init(&remote->holders, 1);
    vec_push(&exchange->steps, remote);
    return remote;
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
        *rendezvous = remote_retain(get_step(exchange, step))->rendezvous;
        exchange->begun = step;
    }
    pthread_mutex_unlock(&exchange->lock);
    return code;
}

/* ---- records of peers ---- */

/* Finds the step of a value or an announcement, held. NULL with code 0: it is over, or there is no
 * room for another step. */
static int find_target(struct value_exchange *exchange, const struct value_id *id,
                       struct arrival *arrival, struct remote **remote, struct error *err)
{
    int64_t index;
    int code = 0;
    if (!map_get(&exchange->names, id->key, &index))
        return error_set(err, ERR_PROTOCOL, "nothing receives '%.200s'", id->key);
    const struct expected_value *expected = &exchange->expected.items[index];
    const struct node_output *output = &expected->output;
    const struct tensor *value = arrival->value;
    arrival->key = expected->name;
    if (value && (value->type != output->type || !shape_compatible(&value->shape, &output->shape)))
        return error_set(err, ERR_PROTOCOL, "'%s' is %s, but was sent as %s", expected->name,
                         shape_text_typed(output->type, &output->shape),
                         shape_text_typed(value->type, &value->shape));
    pthread_mutex_lock(&exchange->lock);
    /* the peer must be the task that sends the value in the graph */
    const struct route *route = &exchange->routes.items[expected->route];
    if (route->peer != arrival->peer &&
        (route->peer || strcmp(route->task, peer_task(arrival->peer))))
        code = error_set(err, ERR_PROTOCOL, "'%s' does not come from it", expected->name);
    else if (exchange_step(exchange, id->step) ||
             (id->step > exchange->begun && exchange->steps.n < EXCHANGE_EARLY_MAX))
        *remote = remote_retain(get_step(exchange, id->step));
    pthread_mutex_unlock(&exchange->lock);
    return code;
}

static int arrive(struct exchanges *all, const struct value_id *id, struct arrival *arrival,
                  struct error *err)
{
    struct value_exchange *exchange = exchange_find(all, id->session);
    struct remote *remote = NULL;
    arrival->iteration = id->iteration;
    int code = exchange ? find_target(exchange, id, arrival, &remote, err) : 0;
    if (remote) {
        code = take_in(remote, arrival, err);
        remote_release(remote);
    } else {
        atomic_fetch_add(&all->dropped, 1);
        if (arrival->charged)
            flow_return(arrival->peer, arrival->charged);
    }
    exchange_release(exchange); /* not before, as it owns the arrival's key */
    return code;
}

int exchanges_value(struct exchanges *all, struct peer *peer, const struct record *record,
                    struct error *err)
{
    struct arrival arrival = {.peer = peer};
    struct tensor shared = TENSOR_INIT;
    struct value_id id;
    int code = 0;
    bool comes = true;
    if (!value_id_read(&id, record) || record->n_tensors > (record->kind == RECORD_VALUE))
        code = error_set(err, ERR_PROTOCOL, "a value record that says not which it is");
    record_get_bool(&record->header, "granted", &arrival.granted);
    if (!code && record->kind == RECORD_SHARE) {
        code = flow_take_shared(peer, record, &shared, err);
        comes = shared.buffer; /* else the value comes as bytes */
        arrival.value = &shared;
    } else if (!code && record->n_tensors) {
        arrival.value = &record->tensors[0].tensor;
    }
    if (!code && comes && !arrival.granted) {
        arrival.charged = flow_cost(arrival.value);
        if (!flow_charge(peer, arrival.charged))
            code = error_set(err, ERR_PROTOCOL, "sends '%.200s' beyond its credit", id.key);
    }
    if (!code && comes)
        code = arrive(all, &id, &arrival, err);
    tensor_release(&shared);
    return code;
}

int exchanges_announce(struct exchanges *all, struct peer *peer, const struct record *record,
                       struct error *err)
{
    struct arrival arrival = {.peer = peer, .is_announced = true};
    struct value_id id;
    return value_id_read(&id, record)
               ? arrive(all, &id, &arrival, err)
               : error_set(err, ERR_PROTOCOL, "an announcement that says not of what");
}

/* ---- a peer is lost ---- */

struct awaited_key {
    const char *task;
    struct str *out;
};

static bool is_awaited(void *context, const struct rendezvous_key *key, bool is_received)
{
    const struct awaited_key *awaited = context;
    struct error ignored = ERROR_INIT;
    char of[TASK_TEXT_BYTES];
    bool found = is_received && !task_of_device(of, key->send_device, &ignored) &&
                 !strcmp(of, awaited->task);
    if (found)
        print_key(key->tensor_name, awaited->out);
    return found;
}

void exchanges_lost(struct exchanges *all, struct peer *peer, const struct error *why)
{
    VEC(struct remote *) steps = VEC_INIT; /* held; of exchanges that have a route to the peer */
    pthread_mutex_lock(&all->lock);
    for (int i = 0; i < EXCHANGE_BUCKETS; i++)
        for (struct value_exchange *exchange = all->buckets[i]; exchange;
             exchange = exchange->next) {
            bool routes_to_it = false;
            pthread_mutex_lock(&exchange->lock);
            vec_each(route, &exchange->routes)
                routes_to_it |= route->peer == peer;
            for (size_t k = 0; routes_to_it && k < exchange->steps.n; k++)
                vec_push(&steps, remote_retain(exchange->steps.items[k]));
            pthread_mutex_unlock(&exchange->lock);
        }
    pthread_mutex_unlock(&all->lock);
    for (size_t i = 0; i < steps.n; i++) {
        struct error reason = *why;
        struct str key = STR_INIT;
        struct awaited_key awaited = {peer_task(peer), &key};
        struct rendezvous *rendezvous = steps.items[i]->rendezvous;
        if (rendezvous->find(rendezvous, is_awaited, &awaited))
            error_waited(&reason, "%s", str_text(&key));
        rendezvous->abort(rendezvous, &reason);
        remote_release(steps.items[i]);
        str_release(&key);
    }
    vec_release(&steps);
}
