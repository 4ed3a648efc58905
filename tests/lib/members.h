/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of a collective within a test: each has a connection manager of its own, whose loop runs
 * in a thread, and Unix sockets in a folder of the test's.
 */
#ifndef TF_TESTS_MEMBERS_H
#define TF_TESTS_MEMBERS_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/links.h"
#include "transport/collective/collective.h"
#include "transport/collective/sum_server.h"

#define MEMBERS_MAX 8
#define ENDS_MAX (MEMBERS_MAX + 4) /* with servers of sums */

struct members;

struct member_end {
    struct members *all;
    int rank;
    struct conns *conns;
    struct collective *collective; /* or, behind the members: */
    struct sum_server *server;
    pthread_t thread;
    struct error met;
};

struct members {
    int n, n_servers;
    char folder[64];
    char tasks[ENDS_MAX][24];
    struct cluster cluster;
    struct member_end ends[ENDS_MAX];
    char said[256]; /* by a server, last */
    pthread_barrier_t listening, there;
};

/* A call of one member, and its result. */
struct reply {
    struct collective_waiter waiter; /* first */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    int n, members;
    struct tensor results[8];
    struct error err;
};

static inline void *member_run(void *argument)
{
    struct member_end *end = argument;
    struct members *all = end->all;
    struct error err = ERROR_INIT;
    char address[24];
    snprintf(address, sizeof address, "unix:w%d", end->rank);
    must(peers_listen(conns_peers(end->conns), address, NULL, &err), &err);
    pthread_barrier_wait(&all->listening);
    if (end->collective) {
        collective_links_join(end->collective, &all->cluster,
                              &(struct member_options){.timeout = 20}, &end->met);
        pthread_barrier_wait(&all->there);
    }
    must(loop_run(conns_loop(end->conns), &err), &err);
    return NULL;
}

static inline void member_heard(void *context, const char *line)
{
    struct members *all = context;
    snprintf(all->said, sizeof all->said, "%s", line);
}

static inline void member_begin(struct member_end *end, const struct collective_tasks *group)
{
    const struct sum_server_options server = {end->conns, member_heard, end->all};
    if (end->rank < group->n)
        end->collective = collective_links_new(end->conns, group, end->rank);
    else
        end->server = sum_server_new(&server);
    assert_int_equal(pthread_create(&end->thread, NULL, member_run, end), 0);
}

/* The first n_shared members have shared memory; `limits`: of each for values; NULL: enough. */
static inline void members_start_served(struct members *all, const int counts[2], int n_shared,
                                        const size_t *limits)
{
    struct error err = ERROR_INIT;
    const char *tasks[ENDS_MAX];
    int n = counts[0], n_ends = n + counts[1];
    memset(all, 0, sizeof *all);
    all->n = n;
    all->n_servers = counts[1];
    const struct collective_tasks group = {tasks, n, counts[1], NULL, NULL};
    char cluster[ENDS_MAX * 64] = "";
    end_folder(all->folder);
    pthread_barrier_init(&all->listening, NULL, (unsigned)n_ends);
    pthread_barrier_init(&all->there, NULL, (unsigned)n + 1);
    for (int k = 0; k < n_ends; k++) {
        snprintf(all->tasks[k], sizeof all->tasks[k], k < n ? "worker:%d" : "ps:%d",
                 k < n ? k : k - n);
        snprintf(cluster + strlen(cluster), 64, "task %s unix:w%d\n", all->tasks[k], k);
        tasks[k] = all->tasks[k];
    }
    must(cluster_parse(&all->cluster, cluster, "cluster", &err), &err);
    for (int k = 0; k < n_ends; k++) {
        struct member_end *end = &all->ends[k];
        struct conns_options options = {.segment_bytes = limits ? limits[k] : 0,
                                        .peers = {.task = all->tasks[k],
                                                  .folder = all->folder,
                                                  .incarnation = 7,
                                                  .lease = 5,
                                                  .no_shared_memory = k >= n_shared}};
        end->all = all;
        end->rank = k;
        end->conns = conns_new(&options, &err);
        assert_non_null(end->conns);
        member_begin(end, &group);
    }
    pthread_barrier_wait(&all->there);
    for (int k = 0; k < n; k++)
        must(all->ends[k].met.code, &all->ends[k].met);
}

static inline void members_start_limited(struct members *all, int n, int n_shared,
                                         const size_t *limits)
{
    const int counts[2] = {n, 0};
    members_start_served(all, counts, n_shared, limits);
}

static inline void members_start_some_shared(struct members *all, int n, int n_shared)
{
    members_start_limited(all, n, n_shared, NULL);
}

static inline void members_start(struct members *all, int n)
{
    members_start_some_shared(all, n, n);
}

/* Acts as if the member's process ended; harmless if it did before. */
static inline void member_kill(struct member_end *end)
{
    if (!end->conns)
        return;
    loop_stop(conns_loop(end->conns));
    pthread_join(end->thread, NULL);
    if (end->collective)
        end->collective->free(end->collective);
    sum_server_free(end->server);
    conns_free(end->conns);
    end->conns = NULL;
}

static inline void members_stop(struct members *all)
{
    for (int k = 0; k < all->n + all->n_servers; k++)
        member_kill(&all->ends[k]);
    assert_int_equal(rmdir(all->folder), 0);
    cluster_release(&all->cluster);
    pthread_barrier_destroy(&all->listening);
    pthread_barrier_destroy(&all->there);
}

/* Returns the bytes that one end received from another. They are counted before they are processed;
 * a sender counts written bytes only when the other end may have replied already. */
static inline uint64_t member_received(struct members *all, int to, int from)
{
    struct link *link =
        to == from ? NULL : peers_find(conns_peers(all->ends[to].conns), all->tasks[from]);
    uint64_t bytes = link ? link_stats(link).bytes_in : 0;
    link_release(link);
    return bytes;
}

static inline void reply_came(struct collective_waiter *waiter,
                              const struct collective_results *results, const struct error *failure)
{
    struct reply *reply = (struct reply *)waiter;
    pthread_mutex_lock(&reply->lock);
    assert_false(reply->done);
    for (int i = 0; i < reply->n && !failure; i++)
        tensor_share(&reply->results[i], &results->values[i]);
    if (failure)
        reply->err = *failure;
    reply->members = failure ? 0 : results->members;
    reply->done = true;
    pthread_cond_signal(&reply->changed);
    pthread_mutex_unlock(&reply->lock);
}

static inline void reply_open(struct reply *reply, int n)
{
    memset(reply, 0, sizeof *reply);
    pthread_mutex_init(&reply->lock, NULL);
    pthread_cond_init(&reply->changed, NULL);
    reply->n = n;
    reply->waiter.done = reply_came;
}

static inline void member_call(struct members *all, int rank, const struct collective_call *call,
                               struct reply *reply)
{
    reply_open(reply, call->n);
    all->ends[rank].collective->reduce(all->ends[rank].collective, call, &reply->waiter);
}

static inline void reply_wait(struct reply *reply)
{
    pthread_mutex_lock(&reply->lock);
    while (!reply->done)
        pthread_cond_wait(&reply->changed, &reply->lock);
    pthread_mutex_unlock(&reply->lock);
}

static inline void reply_release(struct reply *reply)
{
    for (int i = 0; i < reply->n; i++)
        tensor_release(&reply->results[i]);
    pthread_mutex_destroy(&reply->lock);
    pthread_cond_destroy(&reply->changed);
}

#endif
