/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/session/server_private.h"

#include <stddef.h>
#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"

enum served_reaction served_react(struct served_session *served, enum served_event event)
{
    pthread_mutex_lock(&served->lock);
    enum served_reaction what = served_life_react(&served->life, event);
    pthread_mutex_unlock(&served->lock);
    return what;
}

struct served_session *server_find(struct server *server, const struct query *query,
                                   enum served_event event)
{
    struct error err = ERROR_INIT;
    uint64_t id = 0;
    record_get_uint(&query->record->header, "session", &id);
    for (struct served_session *served = server->sessions; served; served = served->next)
        if (served->id == id && served->owner == query->peer &&
            served_react(served, event) == SERVED_GO_ON)
            return served;
    if (server->ends)
        error_set(&err, ERR_UNAVAILABLE, "%s ends", server->options.task);
    else
        error_set(&err, ERR_PROTOCOL, "there is no such session");
    reply_error(query->peer, query->id, &err);
    return NULL;
}

static void verb_info(void *context, const struct query *query)
{
    struct server *server = context;
    msgpack_packer *packer = reply_begin(query->peer, query->id, 4);
    if (!packer)
        return;
    pack_key_text(packer, "task", server->options.task);
    pack_key_int(packer, "sessions", server->n_sessions);
    pack_key_uint(packer, "steps", atomic_load(&server->steps));
    pack_key_uint(packer, "dropped", exchanges_dropped(conns_exchanges(server->options.conns)));
    reply_end(query->peer, NULL, 0);
}

static struct server *server_of(struct conns_watcher *watcher)
{
    return CONTAINER_OF(watcher, struct server, watcher);
}

static void opened(struct conns_watcher *watcher, struct peer *peer)
{
    struct served_session *next;
    for (struct served_session *served = server_of(watcher)->sessions; served; served = next) {
        next = served->next;
        served_linked(served, peer);
    }
}

/* The sessions of a driver end with it. */
static void lost(struct conns_watcher *watcher, struct peer *peer, const struct error *why)
{
    struct served_session *next;
    for (struct served_session *served = server_of(watcher)->sessions; served; served = next) {
        next = served->next;
        if (served->owner == peer)
            served_close(served, why);
    }
}

static void failed(struct conns_watcher *watcher, const char *task, const struct error *why)
{
    struct served_session *next;
    for (struct served_session *served = server_of(watcher)->sessions; served; served = next) {
        next = served->next;
        served_not_linked(served, task, why);
    }
}

/* Every worker waits for the update in one way or another. */
static void update_failed(void *context, const struct error *why)
{
    struct server *server = context;
    for (struct served_session *served = server->sessions; served; served = served->next)
        served_cancel_all(served, why);
}

struct server *server_new(const struct server_options *options)
{
    struct server *server = mem_alloc(sizeof *server);
    struct conns *conns = options->conns;
    server->options = *options;
    if (server->options.timeout <= 0)
        server->options.timeout = 30;
    server->watcher = (struct conns_watcher){opened, lost, failed, NULL};
    conns_watch(conns, &server->watcher);
    variable_store_send_from(options->variables, conns_outgoing(conns));
    server->graphs = serial_queue_new();
    server->updates = update_loops_new(&server->options, server->graphs, update_failed, server);
    conns_verb(conns, "open", server_verb_open, server);
    conns_verb(conns, "close", server_verb_close, server);
    conns_verb(conns, "register", server_verb_register, server);
    conns_verb(conns, "step", server_verb_step, server);
    conns_verb(conns, "cancel", server_verb_cancel, server);
    conns_verb(conns, "read", server_verb_read, server);
    conns_verb(conns, "write", server_verb_write, server);
    conns_verb(conns, "info", verb_info, server);
    return server;
}

static bool has_no_sessions(void *context)
{
    const struct server *server = context;
    return !server->sessions;
}

void server_free(struct server *server)
{
    struct error why = ERROR_INIT;
    struct served_session *next;
    if (!server)
        return;
    server->ends = true;
    error_set(&why, ERR_UNAVAILABLE, "%s ends", server->options.task);
    update_loops_free(server->updates);
    for (struct served_session *served = server->sessions; served; served = next) {
        next = served->next;
        served_close(served, &why);
    }
    loop_run_until(conns_loop(server->options.conns), has_no_sessions, server, -1);
    serial_queue_free(server->graphs);
    conns_unwatch(server->options.conns, &server->watcher);
    variable_store_send_from(server->options.variables, NULL);
    mem_free(server);
}
