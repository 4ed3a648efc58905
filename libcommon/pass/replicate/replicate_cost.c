/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/replicate/replicate_private.h"

#include "pass/place/cost.h"

double replicate_elements(const struct replicator *r, struct edge edge)
{
    const struct shape *shape = &graph_node(r->from, edge.node)->outputs[edge.slot].shape;
    double n = 1;
    for (int i = 0; i < shape->rank; i++)
        n *= (double)(shape->dims[i] < 0 ? r->options->assume : shape->dims[i]);
    return n;
}

int replicate_find_rates(struct replicator *r)
{
    const struct device_name worker = {.job = "worker", .type = "CPU"};
    const struct device_facts facts =
        cost_facts(&worker, r->options->cluster, r->options->measured);
    double *weights = arena_array(&r->arena, r->from->nodes.n + 1, sizeof *weights);
    const struct cost_sample sample = {.graph = r->from,
                                       .measured = r->options->measured,
                                       .weights = weights,
                                       .assume = r->options->assume,
                                       .has_untyped = true};
    int code = cost_weights(r->from, weights, r->err);
    if (!code)
        r->rates = cost_scaled_rates(&sample, "CPU", &facts);
    return code;
}

double replicate_node_ns(const struct replicator *r, const struct node *node)
{
    const struct cost_query query = {node, r->from, r->options->assume};
    double ns;
    if (costs_find(r->options->measured, node, "CPU", &ns))
        return ns;
    return cost_estimate_ns(&query, &r->rates);
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

int replicate_workers(const struct replicate_options *options)
{
    return options->workers   ? options->workers
           : options->cluster ? cluster_count(options->cluster, "worker")
                              : 0;
}

struct replicate_way replicate_gather_way(const struct replicator *r, int n, struct cost_way way,
                                          double bytes)
{
    double all = bytes * (n - 1);
    if (r->options->by_servers && n > 2 && bytes > (double)COLLECTIVE_SMALL_BYTES)
        return (struct replicate_way){bytes, way.latency + r->served_rows.per_byte * bytes};
    return (struct replicate_way){all, way.latency + way.per_byte * all};
}
