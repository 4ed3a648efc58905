/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/session/update_loop.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "base/thread.h"
#include "transport/session/driver_session.h"
#include "transport/session/server_private.h"

/* A task that waits for the reply that an update runs. */
struct asker {
    struct peer *peer; /* held */
    uint64_t query;
};

struct update_loop {
    struct update_loops *updates;
    uint64_t digest;          /* of the graph */
    VEC(struct asker) askers; /* waiting until the graph is read; the loop's thread only */
    bool is_read;             /* the loop's thread only */
    struct served_graph sent;
    struct error unread; /* why it could not be read */
    VEC(int) targets;
    VEC(struct edge) fetches;
    pthread_t thread;
    atomic_bool stop, ended;
    struct error why; /* why it ended */

    pthread_mutex_t lock;           /* guards the members below */
    struct driver_session *session; /* once it is open */
    struct update_loop *next;
};

struct update_loops {
    struct server_options options;
    struct serial_queue *graphs;
    void (*failed)(void *context, const struct error *why);
    void *context;
    struct update_loop *first; /* from here on, the loop's thread only */
    int n;
    int n_asked; /* requests whose digest is computed */
    bool ends;
};

static void reply_all(struct update_loop *update, const struct error *why)
{
    vec_each(asker, &update->askers) {
        if (why->code)
            reply_error(asker->peer, asker->query, why);
        else
            reply_done(asker->peer, asker->query);
        peer_release(asker->peer);
    }
    update->askers.n = 0;
}

/* ---- reading the graph: in the update's thread ---- */

/* The graph has one entry, which is run. */
static int read_update(struct update_loop *update, struct error *err)
{
    const struct registry *registry = update->updates->options.registry;
    if (served_graph_read(&update->sent, registry, "the graph of an update", err))
        return err->code;
    const struct graph *graph = update->sent.graph;
    if (graph->entries.n != 1)
        return error_set(err, ERR_PROTOCOL, "update: %zu entries", graph->entries.n);
    const struct entry *entry = &graph->entries.items[0];
    for (int i = 0; i < entry->n_edges; i++) {
        if (entry->edges[i].slot == CONTROL_SLOT)
            vec_push(&update->targets, entry->edges[i].node);
        else
            vec_push(&update->fetches, entry->edges[i]);
    }
    return 0;
}

static void tell_read(void *argument)
{
    struct update_loop *update = argument;
    update->is_read = true;
    reply_all(update, &update->unread);
}

/* ---- running the update ---- */

static bool update_is_stopped(void *context)
{
    return atomic_load(&((struct update_loop *)context)->stop);
}

static int open_session(struct update_loop *update, struct error *err)
{
    const struct server_options *options = &update->updates->options;
    struct driver_session *session;
    struct driver_session_options o = {.conns = options->conns,
                                       .graph = update->sent.graph,
                                       .task = options->task,
                                       .cluster = &update->sent.cluster,
                                       .local = server_session_options(options),
                                       .timeout = options->timeout,
                                       .given_up = update_is_stopped,
                                       .context = update};
    int code = driver_session_open(&o, &session, err);
    pthread_mutex_lock(&update->lock);
    update->session = session;
    pthread_mutex_unlock(&update->lock);
    return code;
}

static int run_once(struct update_loop *update, int64_t number, struct error *err)
{
    struct plan_request call = {.fetches = update->fetches.items,
                                .n_fetches = (int)update->fetches.n,
                                .targets = update->targets.items,
                                .n_targets = (int)update->targets.n};
    struct tensor *values = mem_array(update->fetches.n + 1, sizeof *values);
    struct step step = {.number = number};
    int code = driver_session_run(update->session, &call, &step, values, err);
    for (size_t i = 0; !code && i < update->fetches.n; i++)
        tensor_release(&values[i]);
    mem_free(values);
    return code;
}

static void tell_end(void *argument)
{
    struct update_loop *update = argument;
    if (!update->unread.code && !atomic_load(&update->stop))
        update->updates->failed(update->updates->context, &update->why);
    atomic_store(&update->ended, true);
}

static void *run_thread(void *argument)
{
    struct update_loop *update = argument;
    struct loop *loop = conns_loop(update->updates->options.conns);
    int code = read_update(update, &update->unread);
    loop_post(loop, tell_read, update);
    if (!code)
        code = open_session(update, &update->why);
    for (int64_t number = 1; !code && !atomic_load(&update->stop); number++)
        code = run_once(update, number, &update->why);
    pthread_mutex_lock(&update->lock);
    struct driver_session *session = update->session;
    update->session = NULL;
    pthread_mutex_unlock(&update->lock);
    driver_session_close(session);
    served_graph_release(&update->sent); /* here, as a large graph takes long */
    loop_post(loop, tell_end, update);
    return NULL;
}

static void update_loop_free(struct update_loop *update)
{
    served_graph_release(&update->sent);
    vec_release(&update->askers);
    vec_release(&update->targets);
    vec_release(&update->fetches);
    pthread_mutex_destroy(&update->lock);
    mem_free(update);
}

/* Frees updates that have ended. */
static void sweep(struct update_loops *updates)
{
    for (struct update_loop **at = &updates->first; *at;) {
        struct update_loop *update = *at;
        if (!atomic_load(&update->ended)) {
            at = &update->next;
            continue;
        }
        *at = update->next;
        updates->n--;
        pthread_join(update->thread, NULL);
        update_loop_free(update);
    }
}

/* ---- the request ---- */

static int start(struct update_loop *update, struct error *err)
{
    struct update_loops *updates = update->updates;
    int code = 0;
    if (updates->ends)
        return error_set(err, ERR_UNAVAILABLE, "%s ends", updates->options.task);
    if (updates->n >= UPDATE_LOOPS_MAX)
        return error_set(err, ERR_RETRY, "runs %d updates already", updates->n);
    if (thread_start(&update->thread, run_thread, update))
        code = error_set(err, ERR_OS, "cannot start a thread");
    return code;
}

/* Runs in the loop's thread, when the digest is known. */
static void take_up(void *argument)
{
    struct update_loop *update = argument;
    struct update_loops *updates = update->updates;
    struct error err = ERROR_INIT;
    updates->n_asked--;
    sweep(updates);
    struct update_loop *running = updates->first;
    while (running && running->digest != update->digest)
        running = running->next;
    if (!running && !start(update, &err)) {
        update->next = updates->first;
        updates->first = update;
        updates->n++;
        return;
    }
    if (running && !running->is_read) { /* it is told together with the first asker */
        vec_push(&running->askers, update->askers.items[0]);
        update->askers.n = 0;
    }
    reply_all(update, running ? &running->unread : &err);
    update_loop_free(update);
}

/* Runs in the queue's thread, as a large graph takes long. */
static void make_digest(void *argument)
{
    struct update_loop *update = argument;
    update->digest = hash_bytes(update->sent.stream.data, tensor_bytes(&update->sent.stream), 0);
    loop_post(conns_loop(update->updates->options.conns), take_up, update);
}

static void verb_update(void *context, const struct query *query)
{
    struct update_loops *updates = context;
    struct served_graph sent = {.graph = NULL};
    struct error err = ERROR_INIT;
    if (served_graph_take(&sent, query, &err)) {
        reply_error(query->peer, query->id, &err);
        return;
    }
    struct update_loop *update = mem_alloc(sizeof *update);
    update->updates = updates;
    update->sent = sent;
    vec_push(&update->askers, ((struct asker){peer_retain(query->peer), query->id}));
    pthread_mutex_init(&update->lock, NULL);
    updates->n_asked++;
    serial_queue_add(updates->graphs, make_digest, update);
}

/* ---- all updates ---- */

struct update_loops *update_loops_new(const struct server_options *options,
                                      struct serial_queue *graphs,
                                      void (*failed)(void *context, const struct error *why),
                                      void *context)
{
    struct update_loops *updates = mem_alloc(sizeof *updates);
    updates->options = *options;
    updates->graphs = graphs;
    updates->failed = failed;
    updates->context = context;
    conns_verb(options->conns, "update", verb_update, updates);
    return updates;
}

static bool have_ended(void *context)
{
    const struct update_loops *updates = context;
    for (const struct update_loop *update = updates->first; update; update = update->next)
        if (!atomic_load(&update->ended))
            return false;
    return !updates->n_asked;
}

void update_loops_free(struct update_loops *updates)
{
    struct error why = ERROR_INIT;
    updates->ends = true;
    error_set(&why, ERR_UNAVAILABLE, "%s ends", updates->options.task);
    for (struct update_loop *update = updates->first; update; update = update->next) {
        atomic_store(&update->stop, true);
        pthread_mutex_lock(&update->lock);
        if (update->session)
            driver_session_cancel(update->session, &why);
        pthread_mutex_unlock(&update->lock);
    }
    loop_run_until(conns_loop(updates->options.conns), have_ended, updates, -1);
    sweep(updates);
    mem_free(updates);
}
