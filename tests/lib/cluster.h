/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: the tasks of a cluster as threads of this process, over Unix sockets in a folder of
 * the test. Shards serve; the test itself drives, as worker:0.
 */
#ifndef TF_TESTS_LIB_CLUSTER_H
#define TF_TESTS_LIB_CLUSTER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "lib/session.h"
#include "lib/unit.h"
#include "transport/session/driver_session.h"
#include "transport/session/server_private.h"

#define TEST_SHARDS 3

/* The end of a node's line in a graph's text: ON("ps/task:0"). */
#define ON(task) " @/job:" task "/device:CPU:0\n"

struct test_shard {
    char task[16];
    struct conns *conns;
    struct server *server;
    struct variable_store *variables;
    struct device *device;
    pthread_t thread;
    bool is_up;
};

struct test_cluster {
    char folder[64];
    struct cluster cluster;
    struct test_shard shards[TEST_SHARDS];
    int n;
    struct conns *conns;     /* of worker:0 */
    size_t segment_bytes[2]; /* of worker:0, and of the shards */
};

static inline struct conns *test_conns(const struct test_cluster *c, const char *task,
                                       uint64_t window)
{
    static uint64_t started; /* several may start in a millisecond */
    struct error err = ERROR_INIT;
    struct conns_options options = {.peers = {.task = task,
                                              .incarnation = ++started,
                                              .producer = "test",
                                              .folder = c->folder,
                                              .lease = 20},
                                    .window = window,
                                    .segment_bytes = c->segment_bytes[!strncmp(task, "ps", 2)]};
    struct conns *conns = conns_new(&options, &err);
    if (!conns)
        fail_msg("%s", err.text);
    return conns;
}

/* Held while a loop is stopped, so that it is not freed meanwhile. */
static pthread_mutex_t test_stopping = PTHREAD_MUTEX_INITIALIZER;

static inline void *test_shard_run(void *argument)
{
    struct test_shard *shard = argument;
    struct error err = ERROR_INIT;
    if (loop_run(conns_loop(shard->conns), &err))
        fail_msg("%s", err.text);
    pthread_mutex_lock(&test_stopping);
    pthread_mutex_unlock(&test_stopping);
    server_free(shard->server);
    conns_free(shard->conns);
    return NULL;
}

static inline void test_shard_start(struct test_cluster *c, int i, uint64_t window)
{
    struct test_shard *shard = &c->shards[i];
    struct error err = ERROR_INIT;
    char address[32];
    snprintf(shard->task, sizeof shard->task, "ps:%d", i);
    snprintf(address, sizeof address, "unix:p%d", i);
    shard->conns = test_conns(c, shard->task, window);
    shard->variables = variable_store_new();
    shard->device = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    if (!shard->device)
        fail_msg("%s", err.text);
    struct server_options options = {.conns = shard->conns,
                                     .task = shard->task,
                                     .registry = ops_registry(),
                                     .kernels = ops_kernels(),
                                     .devices = &shard->device,
                                     .n_devices = 1,
                                     .threads = 1,
                                     .variables = shard->variables,
                                     .timeout = 10};
    shard->server = server_new(&options);
    if (peers_listen(conns_peers(shard->conns), address, NULL, &err))
        fail_msg("%s", err.text);
    shard->is_up = !pthread_create(&shard->thread, NULL, test_shard_run, shard);
    assert_true(shard->is_up);
}

static inline void test_shard_stop(struct test_shard *shard)
{
    if (!shard->is_up)
        return;
    pthread_mutex_lock(&test_stopping);
    loop_stop(conns_loop(shard->conns));
    pthread_mutex_unlock(&test_stopping);
    pthread_join(shard->thread, NULL);
    variable_store_free(shard->variables);
    device_free(shard->device);
    shard->is_up = false;
}

struct test_forget {
    struct test_shard *shard;
    sem_t done;
};

static inline void test_forget_posted(void *argument)
{
    struct test_forget *forget = argument;
    struct test_shard *shard = forget->shard;
    variable_store_free(shard->variables);
    shard->server->options.variables = shard->variables = variable_store_new();
    sem_post(&forget->done);
}

/* Resets a shard that has no session, as if it had just been started. */
static inline void test_shard_forget(struct test_shard *shard)
{
    struct test_forget forget = {.shard = shard};
    sem_init(&forget.done, 0, 0);
    loop_post(conns_loop(shard->conns), test_forget_posted, &forget);
    sem_wait(&forget.done);
    sem_destroy(&forget.done);
}

/* *c must be zeroed except for the test's limits. `window`: of each link; 0: the default. */
static inline void test_cluster_start(struct test_cluster *c, int n, uint64_t window)
{
    struct error err = ERROR_INIT;
    char text[256] = "task worker:0 unix:none\n";
    snprintf(c->folder, sizeof c->folder, "/tmp/tf-cluster-XXXXXX");
    assert_non_null(mkdtemp(c->folder));
    c->n = n;
    for (int i = 0; i < n; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "task ps:%d unix:p%d\n", i, i);
        test_shard_start(c, i, window);
    }
    assert_int_equal(cluster_parse(&c->cluster, text, "test", &err), 0);
    c->conns = test_conns(c, "worker:0", window);
}

static inline void test_cluster_stop(struct test_cluster *c)
{
    conns_free(c->conns);
    for (int i = 0; i < c->n; i++)
        test_shard_stop(&c->shards[i]);
    cluster_release(&c->cluster);
    rmdir(c->folder);
}

/* Opens a session of worker:0 on a partitioned graph. It pumps, or a thread runs the connection
 * manager's loop. */
static inline struct driver_session *test_session_of(const struct test_cluster *c,
                                                     const struct graph *graph, bool pumps)
{
    static struct device *device;
    struct driver_session *session;
    struct error err = ERROR_INIT;
    if (!device)
        device = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    struct driver_session_options options = {
        .conns = c->conns,
        .graph = graph,
        .task = "worker:0",
        .cluster = &c->cluster,
        .local = {.plan = {.kernels = ops_kernels(),
                           .device = device,
                           .outgoing = conns_outgoing(c->conns),
                           .threads = 1},
                  .devices = &device,
                  .n_devices = 1},
        .timeout = 10,
        .pumps = pumps};
    if (driver_session_open(&options, &session, &err))
        fail_msg("%s", err.text);
    return session;
}

static inline struct driver_session *test_session(const struct test_cluster *c,
                                                  const struct graph *graph)
{
    return test_session_of(c, graph, true);
}

#endif
