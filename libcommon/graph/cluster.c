/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/cluster.h"

#include <math.h>
#include <string.h>

void cluster_release(struct cluster *cluster)
{
    vec_release(&cluster->tasks);
    vec_release(&cluster->devices);
    vec_release(&cluster->hosts);
    vec_release(&cluster->links);
    vec_release(&cluster->facts);
    arena_release(&cluster->arena);
}

const struct cluster_task *cluster_find(const struct cluster *cluster, const char *job, int index)
{
    for (size_t i = 0; i < cluster->tasks.n; i++)
        if (cluster->tasks.items[i].index == index && !strcmp(cluster->tasks.items[i].job, job))
            return &cluster->tasks.items[i];
    return NULL;
}

int cluster_count(const struct cluster *cluster, const char *job)
{
    int n = 0;
    for (size_t i = 0; i < cluster->tasks.n; i++)
        n += !strcmp(cluster->tasks.items[i].job, job);
    return n;
}

int cluster_machine(const struct cluster *cluster, int host)
{
    int within = cluster->hosts.items[host].within;
    return within >= 0 ? within : host;
}

bool cluster_end_fits(const struct cluster_end *end, const struct cluster_task *task)
{
    if (end->host >= 0)
        return end->host == task->host;
    return !*end->job ||
           (!strcmp(end->job, task->job) && (end->index < 0 || end->index == task->index));
}

struct cluster_link cluster_link(const struct cluster *cluster, const struct cluster_task *a,
                                 const struct cluster_task *b)
{
    for (size_t i = cluster->links.n; i > 0; i--) {
        const struct cluster_link *link = &cluster->links.items[i - 1];
        if ((cluster_end_fits(&link->a, a) && cluster_end_fits(&link->b, b)) ||
            (cluster_end_fits(&link->a, b) && cluster_end_fits(&link->b, a)))
            return *link;
    }
    /* The bandwidths of the hosts, where stated, are the limit. */
    const int ends[] = {a->host, b->host};
    double least = INFINITY;
    for (int i = 0; i < 2 && a->host != b->host; i++) {
        double bandwidth = cluster->hosts.items[ends[i]].bandwidth;
        if (bandwidth > 0)
            least = fmin(least, bandwidth);
    }
    return (struct cluster_link){.bandwidth = isinf(least) ? CLUSTER_BANDWIDTH : least,
                                 .latency = CLUSTER_LATENCY};
}

struct device_facts cluster_facts(const struct cluster *cluster, const struct device_name *device)
{
    const struct cluster_task *task = cluster_find(cluster, device->job, device->task);
    struct device_facts facts = {0};
    if (!task)
        return facts;
    for (size_t i = cluster->facts.n; i > 0; i--) {
        const struct cluster_device *line = &cluster->facts.items[i - 1];
        if (cluster_end_fits(&line->tasks, task) && !strcmp(line->type, device->type) &&
            (line->index == DEVICE_OPEN || line->index == device->index))
            device_facts_fill(&facts, &line->facts);
    }
    const struct device_facts of_task = {.memory_bytes = task->memory_bytes, .speed = task->speed};
    device_facts_fill(&facts, &of_task);
    return facts;
}
