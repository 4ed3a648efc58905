/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/place/cost.h"

#include <math.h>
#include <string.h>

/* Of a core, for each byte and each message that a task sends, and as much for each that it gets:
 * the system's copies, packets and wake-ups, checksums, and the adding of what came. Measured
 * (docs/costs.md). */
#define BYTE_NS 1.5
#define MESSAGE_NS 60e3

/* ---- what computes ---- */

static bool is_shard(const struct cluster_task *task)
{
    return !strcmp(task->job, SHARD_JOB);
}

double cost_core_share(const struct cluster *cluster, int host, bool of_shards)
{
    int machine = cluster_machine(cluster, host), n = 0;
    int cores = cluster->hosts.items[machine].cores;
    vec_each(task, &cluster->tasks) {
        if (cluster_machine(cluster, task->host) == machine && is_shard(task) == of_shards)
            for (int k = 0; k < task->n_devices; k++)
                n += !strcmp(cluster->devices.items[task->first_device + k].type, "CPU");
    }
    return !cores || n <= cores ? 1 : (double)cores / n;
}

double cost_least_share(const char *job, int n, const struct cluster *cluster)
{
    double least = 1;
    for (int i = 0; cluster && i < n; i++) {
        const struct cluster_task *task = cluster_find(cluster, job, i);
        if (task)
            least = fmin(least, cost_core_share(cluster, task->host, is_shard(task)));
    }
    return least;
}

/* ---- what sends ---- */

/* The load of a machine by its tasks: of all, and of the one that has most. */
struct machine_load {
    double all, most;
};

/* Traffic for each core of the machine where that is most. A task's is for one of its threads. */
static double traffic_of_core(const struct cost_traffic *traffic, int n_traffic,
                              const struct cluster *cluster)
{
    double most = 0;
    for (int i = 0; cluster && i < (int)cluster->hosts.n; i++) {
        int cores = cluster->hosts.items[i].cores;
        struct machine_load load = {0, 0};
        for (int k = 0; cores && k < n_traffic; k++) {
            for (int j = 0; j < traffic[k].n; j++) {
                const struct cluster_task *task = cluster_find(cluster, traffic[k].job, j);
                double each = traffic[k].by_task ? traffic[k].by_task[j] : traffic[k].each;
                if (!task || cluster_machine(cluster, task->host) != i)
                    continue;
                load.all += each;
                load.most = fmax(load.most, each);
            }
        }
        if (cores)
            most = fmax(most, fmax(load.all / cores, load.most));
    }
    return most;
}

struct cost_way cost_with_cores(struct cost_way way, const struct cost_traffic *traffic,
                                int n_traffic, const struct cluster *cluster)
{
    double each = traffic_of_core(traffic, n_traffic, cluster);
    if (cluster && cluster->core_time > 0)
        each *= cluster->core_time;
    return (struct cost_way){way.latency + MESSAGE_NS * each, hypot(way.per_byte, BYTE_NS * each)};
}
