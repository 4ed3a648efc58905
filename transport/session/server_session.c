/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/life.h"
#include "base/memory.h"
#include "graph/graph_io.h"
#include "graph/task.h"
#include "transport/session/server_private.h"

/* ---- the end ---- */

void handle_free(struct handle *handle)
{
    vec_release(&handle->feeds);
    vec_release(&handle->fetches);
    vec_release(&handle->targets);
    vec_release(&handle->order);
    mem_free(handle);
}

/* Takes the longer the larger the graph is. */
static void release(void *argument)
{
    struct served_session *served = argument;
    exchange_close(served->exchange);
    for (size_t i = 0; i < served->handles.n; i++)
        handle_free(served->handles.items[i]);
    vec_release(&served->handles);
    for (struct served_step *step = served->spare, *next; step; step = next) {
        next = step->next;
        mem_free(step);
    }
    session_free(served->session);
    graph_free(served->graph);
    tensor_release(&served->stream);
    vec_release(&served->addresses);
    arena_release(&served->arena);
    peer_release(served->owner);
    pthread_mutex_destroy(&served->lock);
    mem_free(served);
}

void served_free(struct served_session *served)
{
    struct server *server = served->server;
    struct served_session **at = &server->sessions;
    while (*at != served)
        at = &(*at)->next;
    *at = served->next;
    if (served->deadline)
        loop_timer_free(served->deadline);
    serial_queue_add(server->graphs, release, served); /* it ends after the last session */
}

void served_close(struct served_session *served, const struct error *why)
{
    pthread_mutex_lock(&served->lock);
    enum served_reaction what = served_life_react(&served->life, SERVED_CLOSE);
    bool is_idle = !served->n_holders;
    pthread_mutex_unlock(&served->lock);
    if (what == SERVED_IGNORE)
        return;
    served->server->n_sessions--;
    if (what == SERVED_TELL)
        reply_error(served->owner, served->open_query, why);
    if (is_idle)
        served_free(served);
    else
        served_cancel_all(served, why);
}

void server_verb_close(void *context, const struct query *query)
{
    struct served_session *served = server_find(context, query, SERVED_LEFT);
    struct error why = ERROR_INIT;
    if (!served)
        return;
    error_set(&why, ERR_CANCELLED, "the driver closed the session");
    served_close(served, &why);
    reply_done(query->peer, query->id);
}

/* ---- opening ---- */

/* A driver waits for the reply until every link is there. */
static void try_reply(struct served_session *served)
{
    const char *task;
    if (exchange_lacks(served->exchange, &task) ||
        served_react(served, SERVED_WHOLE) != SERVED_GO_ON)
        return;
    loop_timer_free(served->deadline);
    served->deadline = NULL;
    msgpack_packer *packer = reply_begin(served->owner, served->open_query, 1);
    if (!packer)
        return;
    pack_key_uint(packer, "origin", *conns_origin(served->server->options.conns));
    reply_end(served->owner, NULL, 0);
}

static void too_late(void *context)
{
    struct served_session *served = context;
    struct error why = ERROR_INIT;
    const char *task = "";
    if (served_react(served, SERVED_LATE) != SERVED_FAIL)
        return;
    exchange_lacks(served->exchange, &task);
    error_set(&why, ERR_UNAVAILABLE, "no link to %s within %.0f s", task,
              served->server->options.timeout);
    served_close(served, &why);
}

void served_linked(struct served_session *served, struct peer *peer)
{
    if (served_react(served, SERVED_LINKED) != SERVED_GO_ON)
        return;
    exchange_route(served->exchange, peer_task(peer), peer);
    try_reply(served);
}

void served_not_linked(struct served_session *served, const char *task, const struct error *why)
{
    if (served_react(served, SERVED_MISSED) == SERVED_FAIL &&
        exchange_is_without(served->exchange, task))
        served_close(served, why);
}

/* The graph comes as the bytes of a stream. */
static int read_graph(struct served_session *served, struct error *err)
{
    const struct server_options *options = &served->server->options;
    const struct tensor *bytes = &served->stream;
    struct task_table table = {0};
    struct stream_reader *reader =
        stream_reader_new_memory(bytes->data, tensor_bytes(bytes), "the graph of a session");
    int code = graph_read_whole(reader, options->registry, &served->graph, err);
    stream_reader_free(reader);
    tensor_release(&served->stream);
    if (!code)
        code = task_table_fill(&table, served->graph, err);
    if (!code && (table.names.n != 1 || strcmp(table.names.items[0], options->task) != 0))
        code = error_set(err, ERR_CONFIG, "the graph is not that of %s alone", options->task);
    task_table_release(&table);
    return code;
}

static int make(struct served_session *served, struct error *err)
{
    const struct server_options *options = &served->server->options;
    struct session_options session = {.plan = {.kernels = options->kernels,
                                               .device = options->devices[0],
                                               .variables = options->variables,
                                               .outgoing = conns_outgoing(options->conns),
                                               .threads = options->threads},
                                      .devices = options->devices,
                                      .n_devices = options->n_devices};
    served->session = session_new(served->graph, &session);
    served->exchange =
        exchange_open(conns_exchanges(options->conns), served->id, options->task, served->graph);
    return served->exchange
               ? 0
               : error_set(err, ERR_PROTOCOL, "open: there is a session of that number");
}

/* The one of two tasks whose name comes first dials. */
static int reach(struct served_session *served, const struct served_address *to, struct error *err)
{
    const struct server_options *options = &served->server->options;
    struct peer *peer = conns_peer(options->conns, to->task);
    int code = 0;
    if (peer)
        exchange_route(served->exchange, to->task, peer);
    else if (strcmp(options->task, to->task) < 0)
        code = peers_connect(conns_peers(options->conns), to->task, to->address, options->timeout,
                             err);
    peer_release(peer);
    return code;
}

static int reach_all(struct served_session *served, struct error *err)
{
    int code = 0;
    exchange_route(served->exchange, peer_task(served->owner), served->owner);
    for (size_t i = 0; i < served->addresses.n && !code; i++)
        if (exchange_is_without(served->exchange, served->addresses.items[i].task))
            code = reach(served, &served->addresses.items[i], err);
    return code;
}

/* In the loop's thread again; the session is held for it. */
static void go_on(void *argument)
{
    struct served_session *served = argument;
    struct server *server = served->server;
    int code = served->unread.code;
    bool goes_on = served_react(served, SERVED_READ) == SERVED_GO_ON;
    if (goes_on && !code)
        code = reach_all(served, &served->unread);
    if (code) {
        served_close(served, &served->unread);
    } else if (goes_on) {
        served->deadline = loop_timer_new(conns_loop(server->options.conns), too_late, served);
        loop_timer_set(served->deadline, server->options.timeout);
        try_reply(served);
    }
    served_drop(served);
}

/* Runs in the queue's thread. */
static void read_and_make(void *argument)
{
    struct served_session *served = argument;
    if (!read_graph(served, &served->unread))
        make(served, &served->unread);
    loop_post(conns_loop(served->server->options.conns), go_on, served);
}

/* ---- the request ---- */

static int take_addresses(struct served_session *served, const struct record *record,
                          struct error *err)
{
    const msgpack_object *map = record_field(&record->header, "addresses");
    uint32_t n = map && map->type == MSGPACK_OBJECT_MAP ? map->via.map.size : 0;
    for (uint32_t i = 0; i < n; i++) {
        const msgpack_object *key = &map->via.map.ptr[i].key, *value = &map->via.map.ptr[i].val;
        if (key->type != MSGPACK_OBJECT_STR || value->type != MSGPACK_OBJECT_STR)
            return error_set(err, ERR_PROTOCOL, "open: addresses are texts");
        struct served_address address = {
            arena_strndup(&served->arena, key->via.str.ptr, key->via.str.size),
            arena_strndup(&served->arena, value->via.str.ptr, value->via.str.size)};
        vec_push(&served->addresses, address);
    }
    return 0;
}

static int take_request(struct served_session *served, const struct record *record,
                        struct error *err)
{
    const struct server *server = served->server;
    if (!record_get_uint(&record->header, "session", &served->id) || !served->id)
        return error_set(err, ERR_PROTOCOL, "open: which session?");
    if (server->n_sessions >= SERVER_SESSIONS_MAX)
        return error_set(err, ERR_RETRY, "there are %d sessions already", server->n_sessions);
    if (record->n_tensors != 1 || record->tensors[0].tensor.type != UINT8)
        return error_set(err, ERR_PROTOCOL, "open: there is no graph");
    tensor_share(&served->stream, &record->tensors[0].tensor);
    return take_addresses(served, record, err);
}

void server_verb_open(void *context, const struct query *query)
{
    struct server *server = context;
    struct error err = ERROR_INIT;
    struct served_session *served = mem_alloc(sizeof *served);
    served->server = server;
    served->owner = peer_retain(query->peer);
    served->open_query = query->id;
    LIFE_BEGINS("served.reading");
    pthread_mutex_init(&served->lock, NULL);
    if (take_request(served, query->record, &err)) {
        reply_error(query->peer, query->id, &err);
        release(served);
        return;
    }
    served->next = server->sessions;
    server->sessions = served;
    server->n_sessions++;
    served_retain(served);
    serial_queue_add(server->graphs, read_and_make, served);
}
