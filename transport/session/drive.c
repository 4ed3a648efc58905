/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/session/drive.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "graph/graph_io.h"
#include "transport/session/driver_session.h"

struct drive {
    struct drives *drives;
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
    struct drive *next;
};

struct drives {
    struct server_options options;
    void (*failed)(void *context, const struct error *why);
    void *context;
    struct drive *first; /* of the loop's thread */
    int n;
};

/* ---- driving ---- */

static bool is_stopped(void *context)
{
    return atomic_load(&((struct drive *)context)->stop);
}

static int open_session(struct drive *drive, struct error *err)
{
    const struct server_options *options = &drive->drives->options;
    struct driver_session *session;
    struct driver_session_options o = {.hub = options->hub,
                                       .graph = drive->graph,
                                       .task = options->task,
                                       .cluster = &drive->cluster,
                                       .local = {.plan = {.kernels = options->kernels,
                                                          .device = options->devices[0],
                                                          .variables = options->variables,
                                                          .outgoing = hub_outgoing(options->hub),
                                                          .threads = options->threads},
                                                 .devices = options->devices,
                                                 .n_devices = options->n_devices},
                                       .timeout = options->timeout,
                                       .given_up = is_stopped,
                                       .context = drive};
    int code = driver_session_open(&o, &session, err);
    pthread_mutex_lock(&drive->lock);
    drive->session = session;
    pthread_mutex_unlock(&drive->lock);
    return code;
}

static int run_once(struct drive *drive, int64_t number, struct error *err)
{
    struct session_call call = {.fetches = drive->fetches.items,
                                .n_fetches = (int)drive->fetches.n,
                                .targets = drive->targets.items,
                                .n_targets = (int)drive->targets.n};
    struct tensor *values = mem_array(drive->fetches.n + 1, sizeof *values);
    struct step step = {.number = number};
    int code = driver_session_run(drive->session, &call, &step, values, err);
    for (size_t i = 0; !code && i < drive->fetches.n; i++)
        tensor_release(&values[i]);
    mem_free(values);
    return code;
}

static void tell_failure(void *argument)
{
    struct drive *drive = argument;
    if (!atomic_load(&drive->stop))
        drive->drives->failed(drive->drives->context, &drive->why);
    atomic_store(&drive->ended, true);
}

static void *run_thread(void *argument)
{
    struct drive *drive = argument;
    int code = open_session(drive, &drive->why);
    for (int64_t number = 1; !code && !atomic_load(&drive->stop); number++)
        code = run_once(drive, number, &drive->why);
    pthread_mutex_lock(&drive->lock);
    struct driver_session *session = drive->session;
    drive->session = NULL;
    pthread_mutex_unlock(&drive->lock);
    driver_session_close(session);
    loop_post(hub_loop(drive->drives->options.hub), tell_failure, drive);
    return NULL;
}

static void drive_free(struct drive *drive)
{
    graph_free(drive->graph);
    cluster_release(&drive->cluster);
    vec_release(&drive->targets);
    vec_release(&drive->fetches);
    pthread_mutex_destroy(&drive->lock);
    mem_free(drive);
}

/* ---- the request ---- */

static int read_graph(struct drive *drive, const struct record *record, struct error *err)
{
    const struct tensor *bytes = record->n_tensors == 1 ? &record->tensors[0].tensor : NULL;
    if (!bytes || bytes->type != UINT8)
        return error_set(err, ERR_PROTOCOL, "drive: there is no graph");
    struct stream_reader *reader =
        stream_reader_new_memory(bytes->data, tensor_bytes(bytes), "the graph of an update");
    int code = graph_read_whole(reader, drive->drives->options.registry, &drive->graph, err);
    stream_reader_free(reader);
    return code;
}

/* The graph has one entry: what to run. */
static int read_entry(struct drive *drive, struct error *err)
{
    if (drive->graph->entries.n != 1)
        return error_set(err, ERR_PROTOCOL, "drive: %zu entries", drive->graph->entries.n);
    const struct entry *entry = &drive->graph->entries.items[0];
    for (int i = 0; i < entry->n_edges; i++) {
        if (entry->edges[i].slot == CONTROL_SLOT)
            vec_push(&drive->targets, entry->edges[i].node);
        else
            vec_push(&drive->fetches, entry->edges[i]);
    }
    return 0;
}

static int start(struct drive *drive, const struct query *query, struct error *err)
{
    sigset_t all, old;
    const char *cluster = record_text(&query->record->header, "cluster");
    int code = read_graph(drive, query->record, err);
    if (!code)
        code = read_entry(drive, err);
    if (!code)
        code = cluster_parse(&drive->cluster, cluster ? cluster : "", "drive", err);
    if (code)
        return code;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&drive->thread, NULL, run_thread, drive))
        code = error_set(err, ERR_OS, "cannot start a thread");
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return code;
}

/* One that has ended makes room. */
static void sweep(struct drives *drives)
{
    for (struct drive **at = &drives->first; *at;) {
        struct drive *drive = *at;
        if (!atomic_load(&drive->ended)) {
            at = &drive->next;
            continue;
        }
        *at = drive->next;
        drives->n--;
        pthread_join(drive->thread, NULL);
        drive_free(drive);
    }
}

static struct drive *find(const struct drives *drives, uint64_t digest)
{
    struct drive *drive = drives->first;
    while (drive && drive->digest != digest)
        drive = drive->next;
    return drive;
}

static void verb_drive(void *context, const struct query *query)
{
    struct drives *drives = context;
    const struct record *record = query->record;
    struct error err = ERROR_INIT;
    uint64_t digest = record->n_tensors == 1
                          ? hash_bytes(record->tensors[0].tensor.data,
                                       tensor_bytes(&record->tensors[0].tensor), 0)
                          : 0;
    sweep(drives);
    if (find(drives, digest)) {
        answer_done(query->peer, query->id);
        return;
    }
    struct drive *drive = mem_alloc(sizeof *drive);
    drive->drives = drives;
    drive->digest = digest;
    pthread_mutex_init(&drive->lock, NULL);
    int code = drives->n < DRIVES_MAX
                   ? start(drive, query, &err)
                   : error_set(&err, ERR_RETRY, "drives %d updates already", drives->n);
    if (code) {
        drive_free(drive);
        answer_error(query->peer, query->id, &err);
        return;
    }
    drive->next = drives->first;
    drives->first = drive;
    drives->n++;
    answer_done(query->peer, query->id);
}

/* ---- all of them ---- */

struct drives *drives_new(const struct server_options *options,
                          void (*failed)(void *context, const struct error *why), void *context)
{
    struct drives *drives = mem_alloc(sizeof *drives);
    drives->options = *options;
    drives->failed = failed;
    drives->context = context;
    hub_verb(options->hub, "drive", verb_drive, drives);
    return drives;
}

static bool have_ended(void *context)
{
    const struct drives *drives = context;
    for (const struct drive *drive = drives->first; drive; drive = drive->next)
        if (!atomic_load(&drive->ended))
            return false;
    return true;
}

void drives_free(struct drives *drives)
{
    struct error why = ERROR_INIT;
    error_set(&why, ERR_CANCELLED, "%s ends", drives->options.task);
    for (struct drive *drive = drives->first; drive; drive = drive->next) {
        atomic_store(&drive->stop, true);
        pthread_mutex_lock(&drive->lock);
        if (drive->session)
            driver_session_cancel(drive->session, &why);
        pthread_mutex_unlock(&drive->lock);
    }
    loop_run_until(hub_loop(drives->options.hub), have_ended, drives, -1);
    sweep(drives);
    mem_free(drives);
}
