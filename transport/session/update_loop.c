/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/session/update_loop.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "graph/graph_io.h"
#include "transport/session/driver_session.h"

struct update_loop {
    struct update_loops *updates;
    uint64_t digest; /* of the graph */
    struct graph *graph;
    struct cluster cluster;
    VEC(int) targets;
    VEC(struct edge) fetches;
    pthread_t thread;
    atomic_bool stop, ended;
    struct error why; /* it ended */

    pthread_mutex_t lock;           /* guards what follows */
    struct driver_session *session; /* once it is open */
    struct update_loop *next;
};

struct update_loops {
    struct server_options options;
    void (*failed)(void *context, const struct error *why);
    void *context;
    struct update_loop *first; /* of the loop's thread */
    int n;
};

/* ---- running the update ---- */

static bool is_stopped(void *context)
{
    return atomic_load(&((struct update_loop *)context)->stop);
}

static int open_session(struct update_loop *update, struct error *err)
{
    const struct server_options *options = &update->updates->options;
    struct driver_session *session;
    struct driver_session_options o = {.hub = options->hub,
                                       .graph = update->graph,
                                       .task = options->task,
                                       .cluster = &update->cluster,
                                       .local = {.plan = {.kernels = options->kernels,
                                                          .device = options->devices[0],
                                                          .variables = options->variables,
                                                          .outgoing = hub_outgoing(options->hub),
                                                          .threads = options->threads},
                                                 .devices = options->devices,
                                                 .n_devices = options->n_devices},
                                       .timeout = options->timeout,
                                       .given_up = is_stopped,
                                       .context = update};
    int code = driver_session_open(&o, &session, err);
    pthread_mutex_lock(&update->lock);
    update->session = session;
    pthread_mutex_unlock(&update->lock);
    return code;
}

static int run_once(struct update_loop *update, int64_t number, struct error *err)
{
    struct session_call call = {.fetches = update->fetches.items,
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

static void tell_failure(void *argument)
{
    struct update_loop *update = argument;
    if (!atomic_load(&update->stop))
        update->updates->failed(update->updates->context, &update->why);
    atomic_store(&update->ended, true);
}

static void *run_thread(void *argument)
{
    struct update_loop *update = argument;
    int code = open_session(update, &update->why);
    for (int64_t number = 1; !code && !atomic_load(&update->stop); number++)
        code = run_once(update, number, &update->why);
    pthread_mutex_lock(&update->lock);
    struct driver_session *session = update->session;
    update->session = NULL;
    pthread_mutex_unlock(&update->lock);
    driver_session_close(session);
    loop_post(hub_loop(update->updates->options.hub), tell_failure, update);
    return NULL;
}

static void update_loop_free(struct update_loop *update)
{
    graph_free(update->graph);
    cluster_release(&update->cluster);
    vec_release(&update->targets);
    vec_release(&update->fetches);
    pthread_mutex_destroy(&update->lock);
    mem_free(update);
}

/* ---- the request ---- */

static int read_graph(struct update_loop *update, const struct record *record, struct error *err)
{
    const struct tensor *bytes = record->n_tensors == 1 ? &record->tensors[0].tensor : NULL;
    if (!bytes || bytes->type != UINT8)
        return error_set(err, ERR_PROTOCOL, "update: there is no graph");
    struct stream_reader *reader =
        stream_reader_new_memory(bytes->data, tensor_bytes(bytes), "the graph of an update");
    int code = graph_read_whole(reader, update->updates->options.registry, &update->graph, err);
    stream_reader_free(reader);
    return code;
}

/* The graph has one entry: what to run. */
static int read_entry(struct update_loop *update, struct error *err)
{
    if (update->graph->entries.n != 1)
        return error_set(err, ERR_PROTOCOL, "update: %zu entries", update->graph->entries.n);
    const struct entry *entry = &update->graph->entries.items[0];
    for (int i = 0; i < entry->n_edges; i++) {
        if (entry->edges[i].slot == CONTROL_SLOT)
            vec_push(&update->targets, entry->edges[i].node);
        else
            vec_push(&update->fetches, entry->edges[i]);
    }
    return 0;
}

static int start(struct update_loop *update, const struct query *query, struct error *err)
{
    sigset_t all, old;
    const char *cluster = record_text(&query->record->header, "cluster");
    int code = read_graph(update, query->record, err);
    if (!code)
        code = read_entry(update, err);
    if (!code)
        code = cluster_parse(&update->cluster, cluster ? cluster : "", "update", err);
    if (code)
        return code;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&update->thread, NULL, run_thread, update))
        code = error_set(err, ERR_OS, "cannot start a thread");
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return code;
}

/* One that has ended makes room. */
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

static struct update_loop *find(const struct update_loops *updates, uint64_t digest)
{
    struct update_loop *update = updates->first;
    while (update && update->digest != digest)
        update = update->next;
    return update;
}

static void verb_update(void *context, const struct query *query)
{
    struct update_loops *updates = context;
    const struct record *record = query->record;
    struct error err = ERROR_INIT;
    uint64_t digest = record->n_tensors == 1
                          ? hash_bytes(record->tensors[0].tensor.data,
                                       tensor_bytes(&record->tensors[0].tensor), 0)
                          : 0;
    sweep(updates);
    if (find(updates, digest)) {
        answer_done(query->peer, query->id);
        return;
    }
    struct update_loop *update = mem_alloc(sizeof *update);
    update->updates = updates;
    update->digest = digest;
    pthread_mutex_init(&update->lock, NULL);
    int code = updates->n < UPDATE_LOOPS_MAX
                   ? start(update, query, &err)
                   : error_set(&err, ERR_RETRY, "runs %d updates already", updates->n);
    if (code) {
        update_loop_free(update);
        answer_error(query->peer, query->id, &err);
        return;
    }
    update->next = updates->first;
    updates->first = update;
    updates->n++;
    answer_done(query->peer, query->id);
}

/* ---- all of them ---- */

struct update_loops *update_loops_new(const struct server_options *options,
                                      void (*failed)(void *context, const struct error *why),
                                      void *context)
{
    struct update_loops *updates = mem_alloc(sizeof *updates);
    updates->options = *options;
    updates->failed = failed;
    updates->context = context;
    hub_verb(options->hub, "update", verb_update, updates);
    return updates;
}

static bool have_ended(void *context)
{
    const struct update_loops *updates = context;
    for (const struct update_loop *update = updates->first; update; update = update->next)
        if (!atomic_load(&update->ended))
            return false;
    return true;
}

void update_loops_free(struct update_loops *updates)
{
    struct error why = ERROR_INIT;
    error_set(&why, ERR_CANCELLED, "%s ends", updates->options.task);
    for (struct update_loop *update = updates->first; update; update = update->next) {
        atomic_store(&update->stop, true);
        pthread_mutex_lock(&update->lock);
        if (update->session)
            driver_session_cancel(update->session, &why);
        pthread_mutex_unlock(&update->lock);
    }
    loop_run_until(hub_loop(updates->options.hub), have_ended, updates, -1);
    sweep(updates);
    mem_free(updates);
}
