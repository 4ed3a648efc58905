/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pass/place/cost.h"

#define NS 1e9

/* Between devices of one task: threads wake each other; memory of an accelerator is behind a bus.
 */
#define NEAR_LATENCY 2e3
#define BUS_LATENCY 10e3
#define BUS_BYTES 12e9 /* a second */

/* How much longer flows take that meet at an adapter than one alone of as many bytes: what does not
 * fit in the queue before it is sent again. Measured by make bench-techniques (docs/costs.md). */
#define MEETING_LOSS 1.3

static const struct cluster_task *task_of(const struct cluster *cluster,
                                          const struct device_name *name)
{
    return cluster ? cluster_find(cluster, name->job, name->task) : NULL;
}

/* Nanoseconds a byte over the bus that the device is behind; a CPU is behind none. */
static double bus_ns(const struct device_name *device, const struct cluster *cluster,
                     const struct costs *costs)
{
    struct device_facts facts = cost_facts(device, cluster, costs);
    return !strcmp(device->type, "CPU") ? 0 : NS / (facts.bus > 0 ? facts.bus : BUS_BYTES);
}

struct cost_way cost_way(const struct device_name *from, const struct device_name *to,
                         const struct cluster *cluster, const struct costs *costs)
{
    if (device_name_same_task(from, to)) {
        double per_byte = fmax(bus_ns(from, cluster, costs), bus_ns(to, cluster, costs));
        return (struct cost_way){per_byte > 0 ? BUS_LATENCY : NEAR_LATENCY, per_byte};
    }
    const struct cluster_task *a = task_of(cluster, from), *b = task_of(cluster, to);
    struct cluster_link link = {.bandwidth = CLUSTER_BANDWIDTH, .latency = CLUSTER_LATENCY};
    if (a && b)
        link = cluster_link(cluster, a, b);
    return (struct cost_way){NS * link.latency, NS / link.bandwidth};
}

/* ---- exchanges ---- */

/* Of the tasks 0 to n - 1 of a job those that the cluster has: on a host, or (-1) in all. */
static int count_tasks(const char *job, int n, const struct cluster *cluster, int host)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        const struct cluster_task *task = cluster_find(cluster, job, i);
        count += task && (host < 0 || task->host == host);
    }
    return count;
}

double cost_adapter_ns(double flows, double bytes, double bandwidth)
{
    return NS * flows * bytes * (flows > 1 ? MEETING_LOSS : 1) / bandwidth;
}

/* By how much the adapter of the task's host makes a byte to each other one last: those of all the
 * host's tasks go by it. */
static double adapter_ns(const char *job, int n, const struct cluster *cluster, int task)
{
    const struct cluster_task *own = cluster_find(cluster, job, task);
    double bandwidth = own ? cluster->hosts.items[own->host].bandwidth : 0;
    int here = own ? count_tasks(job, n, cluster, own->host) : 0;
    return bandwidth > 0 ? cost_adapter_ns(here * (n - here), 1, bandwidth) : 0;
}

struct cost_way cost_exchange(const char *job, int n, const struct cluster *cluster)
{
    struct cost_way slowest = {0};
    for (int i = 0; i < n; i++) {
        if (cluster)
            slowest.per_byte = fmax(slowest.per_byte, adapter_ns(job, n, cluster, i));
        for (int k = i + 1; k < n; k++) {
            struct device_name from = {.task = i, .type = "CPU"}, to = {.task = k, .type = "CPU"};
            snprintf(from.job, sizeof from.job, "%s", job);
            snprintf(to.job, sizeof to.job, "%s", job);
            struct cost_way way = cost_way(&from, &to, cluster, NULL);
            slowest.latency = fmax(slowest.latency, way.latency);
            slowest.per_byte = fmax(slowest.per_byte, way.per_byte);
        }
    }
    slowest.per_byte /= n > 1 ? n - 1 : 1;
    return slowest;
}

/* ---- pushes ---- */

/* Pairs of a worker and a shard on different hosts: those whose worker, and whose shard, is on the
 * host. */
struct crossing_pairs {
    double workers, shards;
};

static struct crossing_pairs crossing_pairs(int n, int shards, const struct cluster *cluster,
                                            int host)
{
    double workers_here = count_tasks("worker", n, cluster, host);
    double shards_here = count_tasks(SHARD_JOB, shards, cluster, host);
    return (struct crossing_pairs){
        workers_here * (count_tasks(SHARD_JOB, shards, cluster, -1) - shards_here),
        shards_here * (count_tasks("worker", n, cluster, -1) - workers_here)};
}

/* Of the slowest link, in one direction. */
static struct cost_way slowest_link(int n, int shards, const struct cluster *cluster)
{
    struct cost_way slowest = {0};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < shards; k++) {
            const struct device_name from = {.job = "worker", .task = i, .type = "CPU"};
            const struct device_name to = {.job = SHARD_JOB, .task = k, .type = "CPU"};
            struct cost_way way = cost_way(&from, &to, cluster, NULL);
            slowest.latency = fmax(slowest.latency, way.latency);
            slowest.per_byte = fmax(slowest.per_byte, way.per_byte);
        }
    return slowest;
}

/* An adapter sends and gets at the same time. */
struct cost_way cost_pushes(int n, int shards, const struct cluster *cluster)
{
    struct cost_way slowest = slowest_link(n, shards, cluster);
    for (int i = 0; cluster && i < (int)cluster->hosts.n; i++) {
        double bandwidth = cluster->hosts.items[i].bandwidth;
        struct crossing_pairs pairs = crossing_pairs(n, shards, cluster, i);
        if (bandwidth > 0)
            slowest.per_byte = fmax(
                slowest.per_byte, cost_adapter_ns(fmax(pairs.workers, pairs.shards), 1, bandwidth));
    }
    slowest.per_byte /= shards;
    return slowest;
}

/* A host that has workers and shards sends what its workers do and what its shards answer. */
struct cost_way cost_served(int n, int shards, double back, const struct cluster *cluster)
{
    struct cost_way slowest = slowest_link(n, shards, cluster);
    slowest.per_byte *= fmax(1, back);
    for (int i = 0; cluster && i < (int)cluster->hosts.n; i++) {
        double bandwidth = cluster->hosts.items[i].bandwidth;
        struct crossing_pairs pairs = crossing_pairs(n, shards, cluster, i);
        double flows = pairs.workers + pairs.shards;
        double bytes =
            fmax(pairs.workers + back * pairs.shards, pairs.shards + back * pairs.workers);
        if (bandwidth > 0 && flows > 0)
            slowest.per_byte =
                fmax(slowest.per_byte, cost_adapter_ns(flows, bytes / flows, bandwidth));
    }
    slowest.per_byte /= shards;
    return slowest;
}
