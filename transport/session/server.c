/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps run in different threads: cheap kernels in the loop's thread, other kernels, and planning,
 * in helper threads. The thread that ends a step sends the reply.
 */
#include "transport/session/server_private.h"

#include <pthread.h>

#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "base/container_of.h"
#include "base/failpoint.h"
#include "base/life.h"
#include "base/memory.h"
#include "base/thread.h"
#include "exec/state/saver.h"
#include "exec/step/step.h"
#include "exec/step/workers.h"
#include "graph/device_name.h"
#include "graph/graph_io.h"
#include "graph/task.h"
#include "transport/session/served_life.h"

/* A registered request. */
struct handle {
    struct plan_request call; /* without the feeds' values */
    plan_order order;
    struct arena arena; /* of the call's arrays */
};

struct served_step {
    struct session_done done;
    struct served_session *served;
    uint64_t query, id;
    struct peer *asker; /* held */
    const struct handle *handle;
    struct step step;
    struct tensor *feeds, *fetches;
    size_t n_feeds; /* number taken, as the handle may be gone at the end */
    atomic_int holders;
    struct served_step *next;
};

/* A served session. Members without another comment are used in the loop's thread only; while the
 * graph is read, in the queue's thread only. */
struct served_session {
    struct server *server;
    uint64_t id;
    struct peer *owner;       /* the driver, held */
    struct served_graph sent; /* with the addresses of other tasks */
    struct error unread;      /* why it cannot be served */
    struct session *session;
    struct value_exchange *exchange;
    VEC(struct handle *) handles;
    struct served_session *next;

    /* Kept until the session is open. */
    uint64_t open_query;
    struct loop_event *deadline;

    pthread_mutex_t lock;  /* guards the members below */
    enum served_life life; /* changed in the loop's thread only */
    struct served_step *steps;
    int n_holders;             /* steps, the reader of the graph, and others */
    struct served_step *spare; /* memory of steps that are over */
};

/* ---- a graph that a driver sends ---- */

int served_graph_take(struct served_graph *served, const struct query *query, struct error *err)
{
    const struct record *record = query->record;
    const char *cluster = record_text(&record->header, "cluster");
    if (record->n_tensors != 1 || record->tensors[0].tensor.type != UINT8)
        return error_set(err, ERR_PROTOCOL, "%s: there is no graph", query->verb);
    tensor_share(&served->stream, &record->tensors[0].tensor);
    served->cluster_text = cluster ? mem_strdup(cluster) : NULL;
    return 0;
}

int served_graph_read(struct served_graph *served, const struct registry *registry,
                      const char *what, struct error *err)
{
    struct tensor *stream = &served->stream;
    struct stream_reader *reader =
        stream_reader_new_memory(stream->data, tensor_bytes(stream), what);
    int code = graph_read_whole(reader, registry, &served->graph, err);
    stream_reader_free(reader);
    tensor_release(stream);
    return code || !served->cluster_text
               ? code
               : cluster_parse(&served->cluster, served->cluster_text, "cluster", err);
}

void served_graph_release(struct served_graph *served)
{
    tensor_release(&served->stream);
    mem_free(served->cluster_text);
    graph_free(served->graph);
    cluster_release(&served->cluster);
    *served = (struct served_graph){.graph = NULL};
}

/* ---- the session of a request ---- */

/* Applies the event by the table, and returns what is to be done. The loop's thread. */
static enum served_reaction served_react(struct served_session *served, enum served_event event)
{
    pthread_mutex_lock(&served->lock);
    enum served_reaction what = served_life_react(&served->life, event);
    pthread_mutex_unlock(&served->lock);
    return what;
}

/* Finds the session that a query names, if the asker owns it and its state allows the event. NULL:
 * there is none. */
static struct served_session *find_session(const struct server *server, const struct query *query,
                                           enum served_event event, struct error *err)
{
    uint64_t id = 0;
    record_get_uint(&query->record->header, "session", &id);
    for (struct served_session *served = server->sessions; served; served = served->next)
        if (served->id == id && served->owner == query->peer &&
            served_react(served, event) == SERVED_GO_ON)
            return served;
    if (server->ends)
        error_set(err, ERR_UNAVAILABLE, "%s ends", server->options.task);
    else
        error_set(err, ERR_PROTOCOL, "there is no such session");
    return NULL;
}

/* ---- holders, in any thread ---- */

static void handle_free(struct handle *handle)
{
    vec_release(&handle->order);
    arena_release(&handle->arena);
    mem_free(handle);
}

/* Frees the session; a large graph takes long. */
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
    served_graph_release(&served->sent);
    peer_release(served->owner);
    pthread_mutex_destroy(&served->lock);
    mem_free(served);
}

static void served_free(void *argument)
{
    struct served_session *served = argument;
    struct server *server = served->server;
    struct served_session **at = &server->sessions;
    while (*at != served)
        at = &(*at)->next;
    *at = served->next;
    loop_event_free(served->deadline);
    serial_queue_add(server->graphs, release, served); /* the queue ends after the last session */
}

static void served_retain(struct served_session *served)
{
    pthread_mutex_lock(&served->lock);
    served->n_holders++;
    pthread_mutex_unlock(&served->lock);
}

/* Releases a hold: of a step, whose memory the next one reuses, or, with NULL, of another
 * holder. */
static void let_go(struct served_session *served, struct served_step *step)
{
    struct loop *loop = conns_loop(served->server->options.conns);
    pthread_mutex_lock(&served->lock);
    if (step) {
        step->next = served->spare;
        served->spare = step;
    }
    bool is_last = !--served->n_holders && served->life == SERVED_CLOSING;
    pthread_mutex_unlock(&served->lock);
    if (is_last) /* the loop's thread may be about to use it */
        loop_post(loop, served_free, served);
}

/* ---- steps ---- */

/* Steps hold the session. Their memory is reused, as it exceeds what malloc caches. */
static int reuse_step(struct served_session *served, struct served_step **step, struct error *err)
{
    pthread_mutex_lock(&served->lock);
    int n = served->n_holders;
    *step = n < SERVER_STEPS_MAX ? served->spare : NULL;
    if (*step)
        served->spare = (*step)->next;
    served->n_holders += n < SERVER_STEPS_MAX;
    pthread_mutex_unlock(&served->lock);
    if (n >= SERVER_STEPS_MAX)
        return error_set(err, ERR_RETRY, "step: %d run already", n);
    if (!*step)
        *step = mem_alloc(sizeof **step);
    **step = (struct served_step){.served = served};
    return 0;
}

static void step_release(struct served_step *step)
{
    if (atomic_fetch_sub(&step->holders, 1) > 1)
        return;
    for (size_t i = 0; i < step->n_feeds; i++)
        tensor_release(&step->feeds[i]);
    peer_release(step->asker);
    mem_free(step->feeds);
    mem_free(step->fetches);
    let_go(step->served, step);
}

static void reply_step(struct served_step *step)
{
    size_t n = (size_t)step->handle->call.n_fetches;
    struct named_tensor *named = mem_array(n + 1, sizeof *named);
    for (size_t i = 0; i < n; i++)
        named[i] = (struct named_tensor){
            graph_node(step->served->sent.graph, step->handle->call.fetches[i].node)->name,
            step->fetches[i]};
    reply_tensors(step->asker, step->query, named, (int)n);
    for (size_t i = 0; i < n; i++)
        tensor_release(&step->fetches[i]);
    mem_free(named);
}

/* If the rendezvous was aborted from outside, its reason is the first cause. */
static void step_over(struct session_done *done, int code, const struct error *err)
{
    struct served_step *step = (struct served_step *)done;
    struct error reason = ERROR_INIT;
    struct rendezvous *rendezvous = step->step.rendezvous;
    struct served_session *served = step->served;
    atomic_fetch_add(&served->server->steps, 1);
    if (!code)
        reply_step(step);
    else
        reply_error(step->asker, step->query,
                    rendezvous->aborted(rendezvous, &reason) ? &reason : err);
    rendezvous->free(rendezvous);
    pthread_mutex_lock(&served->lock);
    struct served_step **at = &served->steps;
    while (*at != step)
        at = &(*at)->next;
    *at = step->next;
    pthread_mutex_unlock(&served->lock);
    step_release(step);
}

static int take_feeds(struct served_step *step, const struct query *query, struct error *err)
{
    size_t n = (size_t)step->handle->call.n_feeds;
    if ((size_t)query->record->n_tensors != n)
        return error_set(err, ERR_PROTOCOL, "step: %d feeds instead of %zu",
                         query->record->n_tensors, n);
    step->feeds = mem_array(n + 1, sizeof *step->feeds);
    for (size_t i = 0; i < n; i++) {
        const struct tensor *value = &query->record->tensors[i].tensor;
        struct edge edge = step->handle->call.feeds[i];
        const struct node *node = graph_node(step->served->sent.graph, edge.node);
        if (plan_check_fed(node, &node->outputs[edge.slot], value->type, &value->shape, err))
            return err->code;
        tensor_share(&step->feeds[step->n_feeds++], value);
    }
    return 0;
}

static int read_step(struct served_step *step, const struct query *query, struct error *err)
{
    const msgpack_object *header = &query->record->header;
    struct served_session *served = step->served;
    uint64_t handle, replica;
    if (!record_get_uint(header, "handle", &handle) || handle >= served->handles.n ||
        !record_get_uint(header, "step", &step->id) ||
        !record_get_int(header, "number", &step->step.number) ||
        !record_get_uint(header, "seed", &step->step.seed) ||
        !record_get_uint(header, "replica", &replica) || replica > UINT32_MAX ||
        !record_get_uint(header, "incarnation", &step->step.incarnation))
        return error_set(err, ERR_PROTOCOL, "step: a field is missing or wrong");
    step->handle = served->handles.items[handle];
    step->step.replica = (uint32_t)replica;
    step->step.session = served->id;
    if (take_feeds(step, query, err))
        return err->code;
    return exchange_begin(served->exchange, step->id, &step->step.rendezvous, err);
}

static struct plan_request call_of(const struct served_step *step)
{
    struct plan_request call = step->handle->call;
    call.feed_values = step->feeds;
    return call;
}

static void plan_and_start(void *argument)
{
    struct served_step *step = argument;
    struct plan_request call = call_of(step);
    session_start(step->served->session, &call, &step->step, step->fetches, &step->done);
}

/* A plan that is missing is not made in the loop's thread. */
static void run(struct served_step *step)
{
    struct served_session *served = step->served;
    struct plan_request call = call_of(step);
    step->fetches = mem_array((size_t)call.n_fetches + 1, sizeof *step->fetches);
    pthread_mutex_lock(&served->lock);
    step->next = served->steps;
    served->steps = step;
    pthread_mutex_unlock(&served->lock);
    step->done.over = step_over;
    if (!session_start_planned(served->session, &call, &step->step, step->fetches, &step->done) &&
        !workers_submit(1, plan_and_start, step))
        plan_and_start(step);
}

static int verb_step(struct served_session *served, const struct query *query, struct error *err)
{
    struct served_step *step;
    if (reuse_step(served, &step, err))
        return err->code;
    step->query = query->id;
    step->asker = peer_retain(query->peer);
    atomic_init(&step->holders, 1);
    int code = read_step(step, query, err);
    if (!code && step->step.number && FAILPOINT("server.step"))
        code = error_set(err, ERR_RETRY, "failpoint server.step");
    if (code)
        step_release(step);
    else
        run(step);
    return code;
}

/* ---- cancel ---- */

static int verb_cancel(struct served_session *served, const struct query *query, struct error *err)
{
    struct error why = ERROR_INIT;
    const char *text = record_text(&query->record->header, "text");
    int64_t code = ERR_CANCELLED;
    uint64_t id = 0;
    record_get_uint(&query->record->header, "step", &id);
    record_get_int(&query->record->header, "code", &code);
    error_set(&why, code > 0 && code < 256 ? (int)code : ERR_CANCELLED, "%s",
              text ? text : "cancelled");
    pthread_mutex_lock(&served->lock);
    struct served_step *step = served->steps;
    while (step && step->id != id)
        step = step->next;
    if (step)
        atomic_fetch_add(&step->holders, 1);
    pthread_mutex_unlock(&served->lock);
    if (step) {
        step_cancel(&step->step, &why);
        step_release(step);
    } else {
        exchange_forget(served->exchange, id); /* its part is over, but others wanted its values */
    }
    reply_done(query->peer, query->id);
    (void)err;
    return 0;
}

static void cancel_all(struct served_session *served, const struct error *why)
{
    VEC(struct served_step *) all = VEC_INIT;
    pthread_mutex_lock(&served->lock);
    for (struct served_step *step = served->steps; step; step = step->next) {
        atomic_fetch_add(&step->holders, 1);
        vec_push(&all, step);
    }
    pthread_mutex_unlock(&served->lock);
    for (size_t i = 0; i < all.n; i++) {
        step_cancel(&all.items[i]->step, why);
        step_release(all.items[i]);
    }
    vec_release(&all);
}

/* ---- closing ---- */

/* Cancels the session's steps, and frees it when they are over. An open request that waits
 * fails. */
static void served_close(struct served_session *served, const struct error *why)
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
        cancel_all(served, why);
}

static int verb_close(struct served_session *served, const struct query *query, struct error *err)
{
    struct error why = ERROR_INIT;
    error_set(&why, ERR_CANCELLED, "the driver closed the session");
    served_close(served, &why);
    reply_done(query->peer, query->id);
    (void)err;
    return 0;
}

/* ---- opening ---- */

/* Replies to the open request once every link is there. */
static void try_reply(struct served_session *served)
{
    if (exchange_lacks(served->exchange, NULL) ||
        served_react(served, SERVED_WHOLE) != SERVED_GO_ON)
        return;
    loop_event_free(served->deadline);
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
    if (served_react(served, SERVED_LATE) != SERVED_FAIL)
        return;
    const char *task = exchange_lacks(served->exchange, NULL);
    error_set(&why, ERR_UNAVAILABLE, "no link to %s within %.0f s", task ? task : "",
              served->server->options.timeout);
    served_close(served, &why);
}

static int read_graph(struct served_session *served, struct error *err)
{
    const struct server_options *options = &served->server->options;
    struct task_table table = {0};
    int code = served_graph_read(&served->sent, options->registry, "the graph of a session", err);
    if (!code)
        code = task_table_fill(&table, served->sent.graph, err);
    if (!code && (table.names.n != 1 || strcmp(table.names.items[0], options->task) != 0))
        code = error_set(err, ERR_CONFIG, "the graph is not that of %s alone", options->task);
    task_table_release(&table);
    return code;
}

struct session_options server_session_options(const struct server_options *options)
{
    return (struct session_options){.plan = {.kernels = options->kernels,
                                             .device = options->devices[0],
                                             .variables = options->variables,
                                             .outgoing = conns_outgoing(options->conns),
                                             .threads = options->threads},
                                    .devices = options->devices,
                                    .n_devices = options->n_devices};
}

/* Of two tasks, the one with the lesser name dials. */
static int reach_all(struct served_session *served, struct error *err)
{
    const struct server_options *options = &served->server->options;
    int code = 0;
    exchange_route(served->exchange, peer_task(served->owner), served->owner);
    vec_each(to, &served->sent.cluster.tasks) {
        if (code || !exchange_lacks(served->exchange, to->name))
            continue;
        struct peer *peer = conns_peer(options->conns, to->name);
        if (peer)
            exchange_route(served->exchange, to->name, peer);
        else if (strcmp(options->task, to->name) < 0)
            code = peers_connect(conns_peers(options->conns), to->name, to->address,
                                 options->timeout, err);
        peer_release(peer);
    }
    return code;
}

/* Continues in the loop's thread, with a hold of the session. */
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
    let_go(served, NULL);
}

/* Runs in the queue's thread. */
static void read_and_make(void *argument)
{
    struct served_session *served = argument;
    const struct server_options *options = &served->server->options;
    struct session_options session = server_session_options(options);
    if (!read_graph(served, &served->unread)) {
        served->session = session_new(served->sent.graph, &session);
        served->exchange = exchange_open(conns_exchanges(options->conns), served->id, options->task,
                                         served->sent.graph);
        if (!served->exchange)
            error_set(&served->unread, ERR_PROTOCOL, "open: there is a session of that number");
    }
    loop_post(conns_loop(options->conns), go_on, served);
}

static int take_request(struct served_session *served, const struct query *query, struct error *err)
{
    const struct server *server = served->server;
    if (!record_get_uint(&query->record->header, "session", &served->id) || !served->id)
        return error_set(err, ERR_PROTOCOL, "open: which session?");
    if (server->n_sessions >= SERVER_SESSIONS_MAX)
        return error_set(err, ERR_RETRY, "there are %d sessions already", server->n_sessions);
    return served_graph_take(&served->sent, query, err);
}

static void verb_open(void *context, const struct query *query)
{
    struct server *server = context;
    struct error err = ERROR_INIT;
    struct served_session *served = mem_alloc(sizeof *served);
    served->server = server;
    served->owner = peer_retain(query->peer);
    served->open_query = query->id;
    LIFE_BEGINS("served.reading");
    pthread_mutex_init(&served->lock, NULL);
    if (take_request(served, query, &err)) {
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

/* ---- handles: requests that a driver registers and runs repeatedly ---- */

/* Returns the edges of a field: feeds and fetches are tensors, targets are nodes. NULL: it is
 * damaged. */
static struct edge *read_names(const struct graph *graph, const struct query *query,
                               const char *field, struct arena *arena, int *n, struct error *err)
{
    bool are_nodes = !strcmp(field, "targets");
    const msgpack_object *names = record_field(&query->record->header, field);
    if (!names || names->type != MSGPACK_OBJECT_ARRAY) {
        error_set(err, ERR_PROTOCOL, "register: there are no %s", field);
        return NULL;
    }
    *n = (int)names->via.array.size;
    struct edge *edges = arena_array(arena, (size_t)*n + 1, sizeof *edges);
    for (int i = 0; i < *n && !err->code; i++) {
        const msgpack_object *name = &names->via.array.ptr[i];
        if (name->type != MSGPACK_OBJECT_STR)
            error_set(err, ERR_PROTOCOL, "register: %s are texts", field);
        else if (!graph_parse_edge(graph,
                                   arena_strndup(arena, name->via.str.ptr, name->via.str.size),
                                   &edges[i], err) &&
                 edges[i].slot == CONTROL_SLOT && !are_nodes)
            error_set(err, ERR_PROTOCOL, "register: '%s' is no tensor",
                      graph_node(graph, edges[i].node)->name);
    }
    return err->code ? NULL : edges;
}

static bool read_number(const msgpack_object *object, int *number)
{
    *number = object->type == MSGPACK_OBJECT_POSITIVE_INTEGER && object->via.u64 < INT_MAX
                  ? (int)object->via.u64
                  : -1;
    return *number >= 0;
}

static int read_place(const struct graph *graph, const msgpack_object *fields, plan_order *order,
                      struct error *err)
{
    struct plan_place place = {.node = -1};
    struct str name = STR_INIT;
    bool is_right = fields[0].type == MSGPACK_OBJECT_STR && read_number(&fields[1], &place.input) &&
                    read_number(&fields[2], &place.depth) &&
                    read_number(&fields[3], &place.place) &&
                    read_number(&fields[4], &place.is_copied);
    if (is_right && fields[0].via.str.size) {
        str_append_bytes(&name, fields[0].via.str.ptr, fields[0].via.str.size);
        const struct node *node = graph_find(graph, str_text(&name));
        place.node = node ? node->id : -1;
        is_right = node != NULL;
    }
    str_release(&name);
    if (!is_right)
        return error_set(err, ERR_PROTOCOL, "register: the order of reads and writes is damaged");
    vec_push(order, place);
    return 0;
}

/* Reads the order of reads and writes, if the driver gives one. */
static int read_order(const struct graph *graph, const struct query *query, plan_order *order,
                      struct error *err)
{
    const msgpack_object *all = record_field(&query->record->header, "order");
    uint32_t n = all && all->type == MSGPACK_OBJECT_ARRAY ? all->via.array.size : 0;
    for (uint32_t i = 0; i + 4 < n; i += 5)
        if (read_place(graph, all->via.array.ptr + i, order, err))
            return err->code;
    return 0;
}

static int verb_register(struct served_session *served, const struct query *query,
                         struct error *err)
{
    const struct graph *graph = served->sent.graph;
    struct edge *targets = NULL;
    struct handle *handle = mem_alloc(sizeof *handle);
    struct plan_request *call = &handle->call;
    struct arena *arena = &handle->arena;
    if (FAILPOINT("server.register"))
        error_set(err, ERR_RETRY, "failpoint server.register");
    else if (served->handles.n >= SERVER_HANDLES_MAX)
        error_set(err, ERR_PROTOCOL, "register: there are %zu handles already", served->handles.n);
    else if ((call->feeds = read_names(graph, query, "feeds", arena, &call->n_feeds, err)) &&
             (call->fetches = read_names(graph, query, "fetches", arena, &call->n_fetches, err)) &&
             (targets = read_names(graph, query, "targets", arena, &call->n_targets, err)))
        read_order(graph, query, &handle->order, err);
    if (err->code) {
        handle_free(handle);
        return err->code;
    }
    int *nodes = arena_array(arena, (size_t)call->n_targets + 1, sizeof *nodes);
    for (int i = 0; i < call->n_targets; i++)
        nodes[i] = targets[i].node;
    call->targets = nodes;
    call->order = &handle->order;
    vec_push(&served->handles, handle);
    msgpack_packer *packer = reply_begin(query->peer, query->id, 1);
    if (!packer)
        return 0;
    pack_key_uint(packer, "handle", served->handles.n - 1);
    reply_end(query->peer, NULL, 0);
    return 0;
}

/* ---- variables of a session's graph, read and written for drivers that save and restore ----
 *
 * Each request has a thread of its own, as it may wait for steps that have the variable locked;
 * there are few such requests. */

struct variable_access {
    struct served_session *served; /* held */
    struct peer *asker;            /* held */
    uint64_t query;
    struct saved_variable saved;
    struct device *device;
    bool writes;
};

static void access_free(struct variable_access *access)
{
    let_go(access->served, NULL);
    peer_release(access->asker);
    tensor_release(&access->saved.value);
    mem_free(access);
}

static void reply_value(const struct variable_access *access)
{
    struct named_tensor named = {"", access->saved.value};
    msgpack_packer *packer = reply_begin(access->asker, access->query, 1);
    if (!packer)
        return;
    pack_key_int(packer, "updates", access->saved.updates);
    reply_end(access->asker, &named, named.tensor.type != DTYPE_INVALID);
}

static void *run_access(void *argument)
{
    struct variable_access *access = argument;
    struct variable_store *store = access->served->server->options.variables;
    struct error err = ERROR_INIT;
    if (access->writes ? variable_put(store, &access->saved, access->device, &err)
                       : variable_take(store, &access->saved, &err))
        reply_error(access->asker, access->query, &err);
    else if (access->writes)
        reply_done(access->asker, access->query);
    else
        reply_value(access);
    access_free(access);
    return NULL;
}

/* Returns the device of the node; NULL: it is not of this task. */
static struct device *device_of(const struct server *server, const struct node *node)
{
    struct error ignored = ERROR_INIT;
    struct device_name name;
    if (device_name_parse(&name, node->assigned, &ignored))
        return NULL;
    for (int i = 0; i < server->options.n_devices; i++) {
        struct device *device = server->options.devices[i];
        if (!strcmp(device->type, name.type) && device->index == name.index)
            return device;
    }
    return NULL;
}

static int read_query(struct variable_access *access, const struct query *query, struct error *err)
{
    const struct record *record = query->record;
    const char *named = record_text(&record->header, "name"), *name = named ? named : "";
    record_get_int(&record->header, "updates", &access->saved.updates);
    const struct node *node = graph_find(access->served->sent.graph, name);
    access->saved.node = node;
    if (!node || !node_is(node, "Variable"))
        error_set(err, ERR_PROTOCOL, "there is no variable '%.200s' in the session", name);
    else if (!(access->device = device_of(access->served->server, node)))
        error_set(err, ERR_CONFIG, "there is no device '%s' here", node->assigned);
    else if (record->n_tensors != access->writes)
        error_set(err, ERR_PROTOCOL, "%d values for '%.200s'", record->n_tensors, name);
    return err->code;
}

static int verb_access(struct served_session *served, const struct query *query, struct error *err)
{
    pthread_t thread;
    struct variable_access *access = mem_alloc(sizeof *access);
    *access = (struct variable_access){.served = served,
                                       .asker = peer_retain(query->peer),
                                       .query = query->id,
                                       .writes = !strcmp(query->verb, "write")};
    served_retain(served);
    int code = read_query(access, query, err);
    if (!code && access->writes)
        tensor_share(&access->saved.value, &query->record->tensors[0].tensor);
    if (!code && thread_start(&thread, run_access, access))
        code = error_set(err, ERR_OS, "cannot start a thread");
    if (code)
        access_free(access);
    else
        pthread_detach(thread);
    return code;
}

/* ---- requests about a session ---- */

static const struct session_verb {
    const char *name;
    enum served_event event; /* for the session */
    /* Replies, now or later, unless it returns an error, which is the reply. */
    int (*run)(struct served_session *served, const struct query *query, struct error *err);
} session_verbs[] = {{"close", SERVED_LEFT, verb_close},  {"register", SERVED_ASKED, verb_register},
                     {"step", SERVED_ASKED, verb_step},   {"cancel", SERVED_ASKED, verb_cancel},
                     {"read", SERVED_ASKED, verb_access}, {"write", SERVED_ASKED, verb_access}};

static void verb_of_session(void *server, const struct query *query)
{
    const struct session_verb *verb = session_verbs;
    struct error err = ERROR_INIT;
    while (strcmp(verb->name, query->verb) != 0)
        verb++;
    struct served_session *served = find_session(server, query, verb->event, &err);
    if (!served || verb->run(served, query, &err))
        reply_error(query->peer, query->id, &err);
}

/* ---- the server ---- */

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

/* The current session may be freed meanwhile. */
#define each_session(served, server)                                                               \
    for (struct served_session *served = (server)->sessions, *next_;                               \
         served && ((next_ = served->next), true); served = next_)

static struct server *server_of(struct conns_watcher *watcher)
{
    return CONTAINER_OF(watcher, struct server, watcher);
}

/* Sessions that wait for a link continue. */
static void opened(struct conns_watcher *watcher, struct peer *peer)
{
    each_session(served, server_of(watcher))
    {
        if (served_react(served, SERVED_LINKED) != SERVED_GO_ON)
            continue;
        exchange_route(served->exchange, peer_task(peer), peer);
        try_reply(served);
    }
}

/* A driver's sessions end with its link. */
static void lost(struct conns_watcher *watcher, struct peer *peer, const struct error *why)
{
    each_session(served, server_of(watcher)) if (served->owner == peer) served_close(served, why);
}

static void failed(struct conns_watcher *watcher, const char *task, const struct error *why)
{
    each_session(served,
                 server_of(watcher)) if (served_react(served, SERVED_MISSED) == SERVED_FAIL &&
                                         exchange_lacks(served->exchange, task))
        served_close(served, why);
}

/* Every worker waits for the update, directly or not. */
static void update_failed(void *context, const struct error *why)
{
    struct server *server = context;
    each_session(served, server) cancel_all(served, why);
}

struct server *server_new(const struct server_options *options)
{
    struct server *server = mem_alloc(sizeof *server);
    struct conns *conns = options->conns;
    server->options = *options;
    server->watcher = (struct conns_watcher){.opened = opened, .lost = lost, .failed = failed};
    conns_watch(conns, &server->watcher);
    variable_store_send_from(options->variables, conns_outgoing(conns));
    server->graphs = serial_queue_new();
    server->updates = update_loops_new(&server->options, server->graphs, update_failed, server);
    conns_verb(conns, "open", verb_open, server);
    conns_verb(conns, "info", verb_info, server);
    for (size_t i = 0; i < sizeof session_verbs / sizeof *session_verbs; i++)
        conns_verb(conns, session_verbs[i].name, verb_of_session, server);
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
    if (!server)
        return;
    server->ends = true;
    error_set(&why, ERR_UNAVAILABLE, "%s ends", server->options.task);
    update_loops_free(server->updates);
    each_session(served, server) served_close(served, &why);
    loop_run_until(conns_loop(server->options.conns), has_no_sessions, server, -1);
    serial_queue_free(server->graphs);
    conns_unwatch(server->options.conns, &server->watcher);
    variable_store_send_from(server->options.variables, NULL);
    mem_free(server);
}
