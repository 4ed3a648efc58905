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

/* How much longer flows take that come to an adapter from several hosts than one alone of as many
 * bytes: what does not fit in the queue before it is sent again. Measured by make bench-techniques
 * (docs/costs.md). */
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

struct cost_way cost_task_way(const char *job, int task, const char *to_job, int to_task,
                              const struct cluster *cluster)
{
    struct device_name from = {.task = task, .type = "CPU"}, to = {.task = to_task, .type = "CPU"};
    snprintf(from.job, sizeof from.job, "%s", job);
    snprintf(to.job, sizeof to.job, "%s", to_job);
    return cost_way(&from, &to, cluster, NULL);
}

/* ---- exchanges ---- */

/* Counts those of the tasks 0 to n - 1 of a job that the cluster has: on a host, or (-1) on all. */
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

struct cost_way cost_exchange(const char *job, int n, const struct cluster *cluster)
{
    struct cost_way slowest = {0};
    for (int i = 0; i < n; i++) {
        /* The adapter of the task's host: what all the host's tasks send goes by it. */
        const struct cluster_task *own = cluster ? cluster_find(cluster, job, i) : NULL;
        double bandwidth = own ? cluster->hosts.items[own->host].bandwidth : 0;
        int here = bandwidth > 0 ? count_tasks(job, n, cluster, own->host) : 0;
        if (bandwidth > 0)
            slowest.per_byte =
                fmax(slowest.per_byte, cost_adapter_ns(here * (n - here), 1, bandwidth));
        for (int k = i + 1; k < n; k++) {
            struct cost_way way = cost_task_way(job, i, job, k, cluster);
            slowest.latency = fmax(slowest.latency, way.latency);
            slowest.per_byte = fmax(slowest.per_byte, way.per_byte);
        }
    }
    const struct cost_traffic traffic = {.job = job, .n = n, .each = 2.0 * (n - 1)};
    slowest = cost_with_cores(slowest, &traffic, 1, cluster);
    slowest.per_byte /= n > 1 ? n - 1 : 1;
    return slowest;
}

/* ---- workers and shards ---- */

struct tasks {
    const char *job;
    int n;
};

/* Counts the pairs of one of these tasks and one of the others, on different hosts, whose first is
 * on the host. */
static double crossing_pairs(struct tasks these, struct tasks others, const struct cluster *cluster,
                             int host)
{
    double away = count_tasks(others.job, others.n, cluster, -1) -
                  count_tasks(others.job, others.n, cluster, host);
    return count_tasks(these.job, these.n, cluster, host) * away;
}

/* The time of an adapter that sends so many bytes, and gets some by each of several flows. It does
 * both at the same time, and its own flows, which wait for each other in its host, do not get lost
 * in front of it. */
static double both_ways_ns(double sent, double flows, double got, double bandwidth)
{
    if (bandwidth <= 0)
        return 0;
    double in = flows > 0 ? cost_adapter_ns(flows, got / flows, bandwidth) : 0;
    return fmax(NS * sent / bandwidth, in);
}

/* Returns whether the two are workers and shards, in either order. */
static bool has_workers(struct tasks from, struct tasks to, const struct cluster *cluster, int host)
{
    struct tasks workers = strcmp(from.job, SHARD_JOB) ? from : to;
    return count_tasks(workers.job, workers.n, cluster, host) > 0;
}

/* The time for a byte from each to each. Bytes that workers push to a host of shards alone, and
 * that are lost in front of it, cost no time: meanwhile others keep the adapter busy. */
static double crossing_ns(struct tasks from, struct tasks to, const struct cluster *cluster,
                          int host)
{
    double in = crossing_pairs(to, from, cluster, host);
    double flows = has_workers(from, to, cluster, host) ? in : fmin(in, 1);
    return both_ways_ns(crossing_pairs(from, to, cluster, host), flows, in,
                        cluster->hosts.items[host].bandwidth);
}

/* The slowest link in one direction. */
static struct cost_way slowest_link(struct tasks from, struct tasks to,
                                    const struct cluster *cluster)
{
    struct cost_way slowest = {0};
    for (int i = 0; i < from.n; i++)
        for (int k = 0; k < to.n; k++) {
            struct cost_way way = cost_task_way(from.job, i, to.job, k, cluster);
            slowest.latency = fmax(slowest.latency, way.latency);
            slowest.per_byte = fmax(slowest.per_byte, way.per_byte);
        }
    return slowest;
}

/* With cores that are shared, where each has a byte for each of the others, and gets so many back.
 */
static struct cost_way with_cores(struct cost_way way, struct tasks these, struct tasks others,
                                  double back, const struct cluster *cluster)
{
    const struct cost_traffic traffic[] = {
        {.job = these.job, .n = these.n, .each = others.n * (1 + back)},
        {.job = others.job, .n = others.n, .each = these.n * (1 + back)}};
    return cost_with_cores(way, traffic, 2, cluster);
}

/* The way of a byte that each of `from` has for all of `to`, or gets from all of them. */
static struct cost_way each_to_each(struct tasks from, struct tasks to,
                                    const struct cluster *cluster)
{
    struct cost_way slowest = slowest_link(from, to, cluster);
    for (int i = 0; cluster && i < (int)cluster->hosts.n; i++)
        slowest.per_byte = fmax(slowest.per_byte, crossing_ns(from, to, cluster, i));
    return with_cores(slowest, from, to, 0, cluster);
}

struct cost_way cost_pushes(int n, int shards, const struct cluster *cluster)
{
    struct tasks workers = {"worker", n}, all = {SHARD_JOB, shards};
    struct cost_way way = each_to_each(workers, all, cluster);
    way.per_byte /= shards;
    return way;
}

struct cost_way cost_reads(int n, int shards, const struct cluster *cluster)
{
    struct tasks workers = {"worker", n}, all = {SHARD_JOB, shards};
    struct cost_way way = each_to_each(all, workers, cluster);
    way.per_byte /= shards;
    return way;
}

/* Returns whether hosts of shards alone are what this direction waits for. */
static bool waits_for_shards(struct tasks from, struct tasks to, const struct cluster *cluster)
{
    double others = slowest_link(from, to, cluster).per_byte, shards = 0;
    for (int i = 0; i < (int)cluster->hosts.n; i++) {
        double *most = has_workers(from, to, cluster, i) ? &others : &shards;
        *most = fmax(*most, crossing_ns(from, to, cluster, i));
    }
    return shards > 0 && shards >= others;
}

double cost_pushers_beside(int n, int shards, const struct cluster *cluster)
{
    struct tasks workers = {"worker", n}, all = {SHARD_JOB, shards};
    bool waits = cluster && waits_for_shards(workers, all, cluster) &&
                 waits_for_shards(all, workers, cluster);
    return waits ? (n - 1.0) / n : 0;
}

double cost_beside_reads(double share, double pushes, double reads)
{
    return share * fmin(pushes, reads / 2);
}

/* A host that has workers and shards sends what its workers do and what its shards answer, and gets
 * what is for both. */
struct cost_way cost_served(int n, int shards, double back, const struct cluster *cluster)
{
    struct tasks workers = {"worker", n}, all = {SHARD_JOB, shards};
    struct cost_way slowest = slowest_link(workers, all, cluster);
    slowest.per_byte *= fmax(1, back);
    for (int i = 0; cluster && i < (int)cluster->hosts.n; i++) {
        double asks = crossing_pairs(workers, all, cluster, i);
        double answers = crossing_pairs(all, workers, cluster, i);
        slowest.per_byte =
            fmax(slowest.per_byte,
                 both_ways_ns(asks + back * answers, asks + answers, answers + back * asks,
                              cluster->hosts.items[i].bandwidth));
    }
    slowest = with_cores(slowest, workers, all, back, cluster);
    slowest.per_byte /= shards;
    return slowest;
}
