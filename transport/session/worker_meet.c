/* SPDX-License-Identifier: Apache-2.0
 *
 * How workers that compute without shards, and the servers that add for them, find each other.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "exec/step/collective_kernel.h"
#include "transport/collective/collective.h"
#include "transport/session/worker_private.h"

#define DEFAULT_SECONDS 30

struct graph_exchanges worker_find_exchanges(const struct graph *graph)
{
    struct graph_exchanges found = {.by_device = BY_DEVICE_NEVER};
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        bool reduces = node_round(node) == ROUND_REDUCE;
        found.any |= reduces || node_round(node) == ROUND_ROUTE;
        found.by_servers |= reduces && collective_by_servers(node);
        if (reduces && found.by_device == BY_DEVICE_NEVER)
            found.by_device = collective_by_device(node);
    }
    return found;
}

/* Those that meet: the job's tasks by index, a member's rank is its place among them; and servers.
 */
struct join_tasks {
    int n, n_servers, rank;
    struct join_task {
        const char *job;
        int index;
        char text[TASK_TEXT_BYTES];
    } * tasks;
    const char **names;
};

static void add_job(struct join_tasks *all, const struct cluster *cluster, const char *job, int n,
                    int at)
{
    for (int index = 0, end = at + n; at < end; index++) {
        struct join_task *task = &all->tasks[at];
        if (!cluster_find(cluster, job, index))
            continue;
        task->job = job;
        task->index = index;
        snprintf(task->text, sizeof task->text, "%s:%d", job, index);
        all->names[at++] = task->text;
    }
}

static int find_tasks(const struct worker *worker, struct join_tasks *all, struct error *err)
{
    const struct member *member = &worker->member;
    bool served = worker_find_exchanges(worker->options.graph).by_servers;
    all->n = cluster_count(&member->cluster, member->job_name);
    all->n_servers = served ? cluster_count(&member->cluster, SHARD_JOB) : 0;
    if (served && !all->n_servers)
        return error_set(err, ERR_CONFIG,
                         "sums of the graph go by shards, and the cluster has no task of the job "
                         "%s",
                         SHARD_JOB);
    size_t n = (size_t)all->n + (size_t)all->n_servers;
    all->tasks = mem_array(n, sizeof *all->tasks);
    all->names = mem_array(n, sizeof *all->names);
    add_job(all, &member->cluster, member->job_name, all->n, 0);
    add_job(all, &member->cluster, SHARD_JOB, all->n_servers, all->n);
    while (strcmp(all->names[all->rank], member->task) != 0)
        all->rank++;
    return 0;
}

static int meet(struct worker *worker, const struct join_tasks *all, struct error *err)
{
    struct member *member = &worker->member;
    const struct member_options *options = &member->options;
    size_t n = (size_t)all->n + (size_t)all->n_servers;
    const char **addresses = mem_array(n, sizeof *addresses);
    struct collective_join meeting = {.addresses = addresses,
                                      .seconds =
                                          options->timeout > 0 ? options->timeout : DEFAULT_SECONDS,
                                      .waiting = options->waiting,
                                      .given_up = options->given_up,
                                      .context = options->context};
    struct address bound;
    int code = member_listen(member, &bound, err);
    if (!code)
        code = member_wait_for(member, all->names, n, err);
    for (size_t k = 0; !code && k < n; k++)
        addresses[k] =
            cluster_find(&member->cluster, all->tasks[k].job, all->tasks[k].index)->address;
    if (!code)
        code = collective_links_join(worker->collective, &meeting, err);
    mem_free(addresses);
    return code;
}

int worker_open_collective(struct worker *worker, struct error *err)
{
    struct member *member = &worker->member;
    struct join_tasks all = {.n = 0};
    if (cluster_count(&member->cluster, member->job_name) < 2 ||
        !worker_find_exchanges(worker->options.graph).any)
        return 0;
    int code = find_tasks(worker, &all, err);
    const struct collective_tasks group = {all.names, all.n, all.n_servers};
    if (!code) {
        worker->collective = collective_links_new(member->conns, &group, all.rank);
        code = meet(worker, &all, err);
    }
    mem_free(all.names);
    mem_free(all.tasks);
    return code;
}
