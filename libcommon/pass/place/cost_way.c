/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "pass/place/cost.h"

#define NS 1e9

/* Between devices of one task: threads wake each other; memory of an accelerator is behind a bus.
 */
#define NEAR_LATENCY 2e3
#define BUS_LATENCY 10e3
#define BUS_BYTES 12e9 /* a second */

static const struct cluster_task *task_of(const struct cluster *cluster,
                                          const struct device_name *name)
{
    return cluster ? cluster_find(cluster, name->job, name->task) : NULL;
}

struct cost_way cost_way(const struct device_name *from, const struct device_name *to,
                         const struct cluster *cluster)
{
    if (device_name_same_task(from, to)) {
        bool near = !strcmp(from->type, "CPU") && !strcmp(to->type, "CPU");
        return near ? (struct cost_way){NEAR_LATENCY, 0}
                    : (struct cost_way){BUS_LATENCY, NS / BUS_BYTES};
    }
    const struct cluster_task *a = task_of(cluster, from), *b = task_of(cluster, to);
    struct cluster_link link = {.bandwidth = CLUSTER_BANDWIDTH, .latency = CLUSTER_LATENCY};
    if (a && b)
        link = cluster_link(cluster, a, b);
    return (struct cost_way){NS * link.latency, NS / link.bandwidth};
}
