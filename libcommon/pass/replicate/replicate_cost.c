/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/replicate/replicate_cost.h"

#include "pass/place/cost_cores.h"

double replicate_elements(const struct replicator *r, struct edge edge)
{
    const struct shape *shape = &graph_node(r->from, edge.node)->outputs[edge.slot].shape;
    double n = 1;
    for (int i = 0; i < shape->rank; i++)
        n *= (double)(shape->dims[i] < 0 ? r->options->assume : shape->dims[i]);
    return n;
}

double replicate_node_ns(const struct replicator *r, const struct node *node)
{
    const struct cost_query query = {node, r->from, r->options->assume};
    const struct cost_rates rates = cost_rates_of("CPU", NULL);
    double ns;
    if (costs_find(r->options->measured, node, "CPU", &ns))
        return ns;
    return cost_estimate_ns(&query, &rates);
}

int replicate_shards(const struct replicator *r)
{
    int n = r->options->cluster ? cluster_count(r->options->cluster, SHARD_JOB) : 0;
    return n > 0 ? n : 1;
}

double replicate_bytes(const struct replicator *r, struct edge edge)
{
    enum dtype type = graph_node(r->from, edge.node)->outputs[edge.slot].type;
    if (type == FLOAT32 && r->options->wire != DTYPE_INVALID)
        type = r->options->wire;
    return replicate_elements(r, edge) * (double)dtype_bytes(type);
}

double replicate_workers_ns(const struct replicator *r, double ns)
{
    return ns / cost_least_share("worker", replicate_workers(r->options), r->options->cluster);
}

double replicate_shards_ns(const struct replicator *r, double ns)
{
    int n = replicate_shards(r);
    return ns / cost_least_share(SHARD_JOB, n, r->options->cluster) / n;
}
