/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: a model replicated, placed over two shards and workers, partitioned, and run in one
 * process. Shards are CPU:0 and CPU:1, each worker is CPU:2 of its own session; they share one
 * store, in which a worker's own variables and its journal bear its name.
 */
#ifndef TF_TESTS_LIB_REPLICAS_H
#define TF_TESTS_LIB_REPLICAS_H

#include "lib/scripts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "exec/session/request.h"
#include "exec/session/session.h"
#include "exec/step/collective.h"
#include "exec/step/step.h"
#include "graph/join.h"
#include "lib/cut.h"
#include "pass/place/place.h"
#include "pass/replicate/replicate.h"
#include "resource/clock.h"

#define WORKERS_MAX 8

struct replica {
    struct replicas *job;
    uint32_t rank;
    uint64_t incarnation;
    struct graph *joined;
    struct session *session;
    struct collective *collective; /* NULL: none */
    char name[32];                 /* of what is its own */
};

struct replicas {
    struct graph *whole, *replicated;
    struct parts parts;
    struct variable_store *store;
    int n_workers;
    struct replica workers[WORKERS_MAX];
    struct replica driver; /* of the updates */
    pthread_t thread;
    struct step *update; /* that runs now; guarded by lock */
    pthread_mutex_t lock;
    bool stops;
    struct error stopped;
    atomic_llong rounds; /* that are in the log */
    VEC(int64_t) log;    /* of rounds: how many members; and each one's worker and step */
};

struct feed {
    const char *name;
    struct tensor value;
};

/* Runs an entry, and fetches its tensors and those of `fetch` into `values`, which must have room.
 * Returns the code. */
static inline int worker_run_fetch(struct replica *w, struct step *step, const char *entry,
                                   const char *fetch, const struct feed *feeds, int n_feeds,
                                   struct tensor *values, struct error *err)
{
    struct request request = {.graph = w->joined};
    struct edge edges[8];
    struct tensor fed[8];
    for (int i = 0; i < n_feeds; i++) {
        assert_int_equal(graph_parse_edge(w->joined, feeds[i].name, &edges[i], err), 0);
        fed[i] = feeds[i].value;
    }
    if (request_run(&request, entry, err) || (fetch && request_fetch(&request, fetch, err)))
        fail_msg("%s", err->text);
    struct plan_request call = {.feeds = edges,
                                .feed_values = fed,
                                .n_feeds = n_feeds,
                                .fetches = request.fetches.items,
                                .n_fetches = (int)request.fetches.n,
                                .targets = request.targets.items,
                                .n_targets = (int)request.targets.n};
    step->replica = w->rank;
    step->incarnation = w->incarnation;
    step->collective = w->collective;
    int code = session_run(w->session, &call, step, values, err);
    request_release(&request);
    return code;
}

static inline int worker_run(struct replica *w, struct step *step, const char *entry,
                             const struct feed *feeds, int n_feeds, struct tensor *values,
                             struct error *err)
{
    return worker_run_fetch(w, step, entry, NULL, feeds, n_feeds, values, err);
}

/* Returns the value of a variable in the store. */
static inline const struct tensor *replicas_variable(struct replicas *job, const char *name)
{
    const struct variable *variable = variable_store_find(job->store, "default", name);
    if (!variable)
        fail_msg("there is no variable '%s'", name);
    return &variable->value;
}

/* ---- a worker's life ---- */

static inline void worker_open(struct replica *w, struct replicas *job, uint32_t rank,
                               uint64_t incarnation)
{
    const struct graph *graphs[CUT_DEVICES];
    struct error err = ERROR_INIT;
    char own[64];
    *w = (struct replica){.job = job, .rank = rank, .incarnation = incarnation};
    snprintf(w->name, sizeof w->name, "worker%u.%llx", rank, (unsigned long long)incarnation);
    for (size_t i = 0; i < job->parts.parts.n; i++)
        graphs[i] = job->parts.parts.items[i].graph;
    if (graph_join(graphs, (int)job->parts.parts.n, &w->joined, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < w->joined->nodes.n; i++) {
        struct node *node = graph_node(w->joined, (int)i);
        snprintf(own, sizeof own, "%s/%zu", w->name, i);
        struct attr container = {"container", attr_string(w->name)};
        if (!strncmp(node->op->def->name, "Journal", 7) &&
            graph_set_attr(w->joined, node, &container, &err))
            fail_msg("%s", err.text);
        if (node_is(node, "Variable") && strstr(node->assigned, "worker") &&
            graph_set_attr(w->joined, node, &(struct attr){"shared_name", attr_string(own)}, &err))
            fail_msg("%s", err.text);
    }
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .threads = 1, .variables = job->store},
        .devices = cut_devices(),
        .n_devices = CUT_DEVICES};
    w->session = session_new(w->joined, &options);
}

static inline void worker_close(struct replica *w)
{
    session_free(w->session);
    graph_free(w->joined);
}

/* Joins; returns the number of the last step of this worker that was counted or dropped. */
static inline int64_t worker_join(struct replica *w)
{
    struct step step = {.number = 0};
    struct error err = ERROR_INIT;
    struct tensor values[2];
    if (worker_run(w, &step, "join", NULL, 0, values, &err))
        fail_msg("%s", err.text);
    int64_t seq = tensor_get_int64(&values[1], 0);
    tensor_release(&values[0]);
    tensor_release(&values[1]);
    return seq;
}

static inline void worker_leave(struct replica *w)
{
    struct step step = {.number = 0};
    struct error err = ERROR_INIT;
    if (worker_run(w, &step, "leave", NULL, 0, NULL, &err))
        fail_msg("%s", err.text);
}

/* ---- the updates ---- */

static inline void replicas_log(struct replicas *job, struct tensor *members)
{
    int64_t n = members->shape.dims[0];
    vec_push(&job->log, n);
    for (int64_t i = 0; i < n; i++) {
        vec_push(&job->log, tensor_get_int64(members, 3 * i));
        vec_push(&job->log, tensor_get_int64(members, 3 * i + 2));
    }
    tensor_release(members);
    atomic_fetch_add(&job->rounds, 1);
}

static inline void *replicas_drive(void *argument)
{
    struct tensor members;
    struct replicas *job = argument;
    int code = 0;
    for (int64_t number = 1; !code; number++) {
        struct step step = {.number = number};
        pthread_mutex_lock(&job->lock);
        bool stops = job->stops;
        job->update = &step;
        pthread_mutex_unlock(&job->lock);
        if (!stops)
            code = worker_run_fetch(&job->driver, &step, "update", "clock/round:1", NULL, 0,
                                    &members, &job->stopped);
        if (!stops && !code)
            replicas_log(job, &members);
        pthread_mutex_lock(&job->lock);
        job->update = NULL;
        pthread_mutex_unlock(&job->lock);
        if (stops)
            break;
    }
    return NULL;
}

static inline void replicas_start(struct replicas *job)
{
    job->stops = false;
    job->stopped = ERROR_INIT;
    worker_open(&job->driver, job, 0, 0);
    assert_int_equal(pthread_create(&job->thread, NULL, replicas_drive, job), 0);
}

/* Ends the updates; their result is in `stopped`. */
static inline void replicas_stop(struct replicas *job)
{
    struct error reason = ERROR_INIT;
    struct clock *clock = resource_get(job->store, &clock_kind, "default", "train");
    error_set(&reason, ERR_CANCELLED, "the test is over");
    while (atomic_load(&job->rounds) < clock_version(clock)) /* its step is not over yet */
        nanosleep(&(struct timespec){0, 100000}, NULL);
    pthread_mutex_lock(&job->lock);
    job->stops = true;
    if (job->update)
        step_cancel(job->update, &reason);
    pthread_mutex_unlock(&job->lock);
    pthread_join(job->thread, NULL);
    worker_close(&job->driver);
}

/* ---- the whole ---- */

static inline void replicas_place(struct replicas *job)
{
    static const char text[] = "task ps:0 unix:a device=CPU:0\n"
                               "task ps:1 unix:b device=CPU:1\n"
                               "task worker:0 unix:c device=CPU:2\n";
    struct cluster cluster = {0};
    struct placement placement = {.arena = ARENA_INIT};
    struct place_costs costs = {.assume = 32};
    struct place_options options = {
        .placement = &placement, .kernels = ops_kernels(), .model = &costs};
    struct error err = ERROR_INIT;
    if (cluster_parse(&cluster, text, "test", &err) ||
        placement_add_cluster(&placement, &cluster, &err) ||
        place_graph(job->replicated, &options, &err) ||
        part_graph(job->replicated, NULL, &job->parts, &err))
        fail_msg("%s", err.text);
    placement_release(&placement);
    cluster_release(&cluster);
}

/* Takes ownership of `whole`. */
static inline void replicas_open(struct replicas *job, struct graph *whole,
                                 const struct replicate_options *more, const char *mode,
                                 int n_workers)
{
    struct error err = ERROR_INIT;
    struct replicate_options options = more ? *more : (struct replicate_options){0};
    memset(job, 0, sizeof *job);
    job->whole = whole;
    job->n_workers = n_workers;
    options.workers = n_workers;
    if (replicate_parse(&options, mode, &err) ||
        replicate_graph(whole, &options, &job->replicated, &err))
        fail_msg("%s", err.text);
    replicas_place(job);
    pthread_mutex_init(&job->lock, NULL);
    job->store = variable_store_new();
    for (int i = 0; i < n_workers; i++)
        worker_open(&job->workers[i], job, (uint32_t)i, 1);
    struct step step = {.number = 0};
    if (options.mode != REPLICATE_ALLREDUCE &&
        worker_run(&job->workers[0], &step, "init", NULL, 0, NULL, &err))
        fail_msg("%s", err.text);
}

static inline void replicas_close(struct replicas *job)
{
    for (int i = 0; i < job->n_workers; i++)
        worker_close(&job->workers[i]);
    variable_store_free(job->store);
    vec_release(&job->log);
    parts_release(&job->parts);
    graph_free(job->replicated);
    graph_free(job->whole);
    pthread_mutex_destroy(&job->lock);
}

#endif
