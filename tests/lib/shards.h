/* SPDX-License-Identifier: Apache-2.0
 *
 * Shards that run in threads of a test, and a client that sends them requests over Unix sockets.
 * The test runs in its own folder from shards_start to shards_end.
 */
#ifndef TF_TESTS_LIB_SHARDS_H
#define TF_TESTS_LIB_SHARDS_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/entries.h"
#include "lib/unit.h"
#include "ps/client.h"
#include "ps/containers.h"
#include "ps/shard.h"

#define SHARDS 2

static const char cluster_text[] = "task ps:0 unix:ps-0\ntask ps:1 unix:ps-1\n";

struct test_server {
    char task[16];
    struct conns *conns;
    struct variable_store *store;
    struct shard *shard;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    char told[512];
    struct error failure; /* why it cannot go on */
};

static struct test_server servers[SHARDS];
static char folder[64];

static inline int find_cluster(void *context, struct cluster *cluster, struct error *err)
{
    (void)context;
    return cluster_parse(cluster, cluster_text, "test", err);
}

static inline void tell(void *context, const char *line)
{
    struct test_server *server = context;
    pthread_mutex_lock(&server->lock);
    snprintf(server->told, sizeof server->told, "%s", line);
    pthread_mutex_unlock(&server->lock);
}

static inline void *run(void *argument)
{
    struct test_server *server = argument;
    struct error err = ERROR_INIT;
    loop_run(conns_loop(server->conns), &err);
    return NULL;
}

static inline void cannot_go_on(void *context, const struct error *why)
{
    struct test_server *server = context;
    pthread_mutex_lock(&server->lock);
    server->failure = *why;
    pthread_mutex_unlock(&server->lock);
}

static inline int failure_of(struct test_server *server)
{
    pthread_mutex_lock(&server->lock);
    int code = server->failure.code;
    pthread_mutex_unlock(&server->lock);
    return code;
}

/* Starts a shard that has its verbs, but replies to nobody before start_answering. */
static inline void start_silent(struct test_server *server, int i, int64_t save_every)
{
    struct error err = ERROR_INIT;
    pthread_mutex_init(&server->lock, NULL);
    snprintf(server->task, sizeof server->task, "ps:%d", i);
    server->failure = ERROR_INIT;
    struct conns_options conns = {.peers = {.task = server->task, .producer = "test"}};
    server->conns = conns_new(&conns, &err);
    assert_non_null(server->conns);
    if (!server->store)
        server->store = variable_store_new();
    struct shard_options options = {.conns = server->conns,
                                    .task = server->task,
                                    .variables = server->store,
                                    .context = server,
                                    .find_cluster = find_cluster,
                                    .tell = tell,
                                    .fail = cannot_go_on,
                                    .save_folder = "ckpt",
                                    .save_every = save_every};
    server->shard = shard_new(&options);
}

static inline void start_answering(struct test_server *server, int i)
{
    struct error err = ERROR_INIT;
    char address[32];
    snprintf(address, sizeof address, "unix:ps-%d", i);
    assert_int_equal(peers_listen(conns_peers(server->conns), address, NULL, &err), 0);
    assert_int_equal(pthread_create(&server->thread, NULL, run, server), 0);
}

static inline void start(struct test_server *server, int i, int64_t save_every)
{
    start_silent(server, i, save_every);
    start_answering(server, i);
}

static inline void end(struct test_server *server)
{
    loop_stop(conns_loop(server->conns));
    pthread_join(server->thread, NULL);
    shard_free(server->shard);
    conns_free(server->conns);
    server->conns = NULL;
}

static inline int64_t put(struct test_server *server, const char *container, const char *name,
                          int64_t value)
{
    struct error err = ERROR_INIT;
    struct variable like = {.container = container, .name = name, .type = INT64}, *variable;
    struct tensor t = tensor_borrow(INT64, &like.shape, &value);
    assert_int_equal(variable_store_get(server->store, &like, &variable, &err), 0);
    assert_int_equal(containers_put(server->store, container, name, 1, &t, &err), 0);
    return value;
}

static inline int64_t get(struct test_server *server, const char *name)
{
    struct error err = ERROR_INIT;
    struct tensor t = TENSOR_INIT;
    if (containers_get(server->store, "default", name, 1, &t, &err))
        fail_msg("%s", err.text);
    int64_t value = *(int64_t *)t.data;
    tensor_release(&t);
    return value;
}

static inline void shards_start(int64_t save_every)
{
    FILE *file;
    snprintf(folder, sizeof folder, "/tmp/tf-shard-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_non_null(file = fopen("cluster", "w"));
    fputs(cluster_text, file);
    fclose(file);
    for (int i = 0; i < SHARDS; i++)
        start(&servers[i], i, save_every);
    put(&servers[0], "default", "v", 1);
    put(&servers[0], "scratch", "s", 2);
    put(&servers[1], "default", "w", 3);
}

static inline void shards_end(void)
{
    char command[128];
    for (int i = 0; i < SHARDS; i++) {
        if (servers[i].conns)
            end(&servers[i]);
        variable_store_free(servers[i].store);
        servers[i] = (struct test_server){0};
    }
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(chdir("/") | system(command), 0);
}

static inline void assert_told(struct test_server *server, const char *line)
{
    pthread_mutex_lock(&server->lock);
    assert_string_equal(server->told, line);
    pthread_mutex_unlock(&server->lock);
}

static inline bool has_value(struct test_server *server, const char *container, const char *name)
{
    struct variable *variable = variable_store_find(server->store, container, name);
    if (!variable)
        return false;
    variable_lock_wait(variable, false);
    bool has = variable->initialized;
    variable_unlock(variable, false);
    return has;
}

static inline void open_client(struct client *client, const char *task)
{
    struct error err = ERROR_INIT;
    struct member_options options = {.cluster_path = "cluster", .task = task, .timeout = 5};
    *client = (struct client){.cancelled = NULL};
    if (client_open(client, &options, &err))
        fail_msg("%s", err.text);
}

/* Returns the value of an int64 in a checkpoint of the folder; its step in *step. */
static inline int64_t shards_saved(const char *store_name, int64_t *step, const char *name)
{
    struct error err = ERROR_INIT, passed_over = ERROR_INIT;
    struct store *store;
    struct checkpoint *c = NULL;
    struct tensor value;
    if (store_open(store_name, NULL, &store, &err) ||
        checkpoint_open(store, *step, &c, &passed_over, &err))
        fail_msg("%s", err.text);
    assert_int_equal(passed_over.code, 0);
    assert_int_equal(c->manifest.shards.n, SHARDS);
    *step = c->manifest.step;
    int i = entry_find(c, name);
    assert_true(i >= 0);
    assert_int_equal(checkpoint_read(c, i, &value, &err), 0);
    int64_t result = *(int64_t *)value.data;
    tensor_release(&value);
    checkpoint_close(c);
    store_close(store);
    return result;
}

static inline bool shards_have_step(const char *store_name, int64_t step)
{
    struct error err = ERROR_INIT;
    struct store *store;
    struct checkpoint *c = NULL;
    if (store_open(store_name, NULL, &store, &err))
        return false;
    bool has = !checkpoint_open(store, step, &c, NULL, &err);
    if (has)
        checkpoint_close(c);
    store_close(store);
    return has;
}

#endif
