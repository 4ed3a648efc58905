/* SPDX-License-Identifier: Apache-2.0
 *
 * The costs of exchanges. With all-reduce a worker sends 2 (n - 1) / n of a gradient, and n - 1
 * times small values and a table's rows. To shards it sends each gradient once a push, and shards
 * share the computation. Shards that only add receive a gradient, and rows, once, and at the same
 * time send each worker the sum, or the others' rows.
 */
#include <math.h>
#include <stdarg.h>

#include "collective/schedule.h"
#include "graph/op_cost.h"
#include "pass/replicate/replicate_plan.h"

void replicate_explain(const struct replicate_options *options, const char *format, ...)
{
    struct arena arena = ARENA_INIT;
    va_list args;
    va_start(args, format);
    if (options->explain)
        options->explain(arena_vprintf(&arena, format, args));
    va_end(args);
    arena_release(&arena);
}

/* ---- bytes, and computing times ---- */

double replicate_bytes(const struct replicator *r, struct edge edge)
{
    struct node_output output = *graph_output(r->from, edge);
    if (output.type == FLOAT32 && r->options->wire != DTYPE_INVALID)
        output.type = r->options->wire;
    return cost_bytes(&output, r->options->assume);
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
    if (!cost_weights(r->from, weights, r->err))
        r->rates = cost_scaled_rates(&sample, "CPU", &facts);
    return r->err->code;
}

double replicate_node_ns(const struct replicator *r, const struct node *node)
{
    const struct cost_query query = {node, r->from, r->options->assume};
    double ns;
    if (costs_find(r->options->measured, node, "CPU", &ns))
        return ns;
    return cost_estimate_ns(&query, &r->rates);
}

static int count_shards(const struct replicator *r)
{
    int n = r->options->cluster ? cluster_count(r->options->cluster, SHARD_JOB) : 0;
    return n > 0 ? n : 1;
}

int replicate_workers(const struct replicate_options *options)
{
    return options->workers   ? options->workers
           : options->cluster ? cluster_count(options->cluster, "worker")
                              : 0;
}

double replicate_workers_ns(const struct replicator *r, double ns)
{
    return ns / cost_least_share("worker", replicate_workers(r->options), r->options->cluster);
}

double replicate_shards_ns(const struct replicator *r, double ns)
{
    int n = count_shards(r);
    return ns / cost_least_share(SHARD_JOB, n, r->options->cluster) / n;
}

/* ---- the schedule ----
 *
 * One schedule sums all gradients that cross whole: the one asked for, or the one that takes the
 * least time for all together. */

/* There is only one level if all workers are on one host, or each is on a host of its own. */
static bool has_two_levels(const struct replicator *r, int n)
{
    const struct cluster *cluster = r->options->cluster;
    int n_hosts = 0;
    for (int i = 0; i < n; i++) {
        const struct cluster_task *task = cluster ? cluster_find(cluster, "worker", i) : NULL;
        bool is_new = true;
        if (!task)
            return false;
        for (int k = 0; k < i; k++)
            is_new &= cluster_find(cluster, "worker", k)->host != task->host;
        n_hosts += is_new;
    }
    return n_hosts > 1 && n_hosts < n;
}

int replicate_choose_schedule(struct replicator *r)
{
    const struct replicate_options *options = r->options;
    int n = replicate_workers(r->options);
    struct cost_sum costs[SCHEDULE_TWO_LEVEL + 1] = {{0}};
    r->schedule = options->schedule;

    if (options->by_servers && options->cluster && !cluster_count(options->cluster, SHARD_JOB))
        return error_set(r->err, ERR_USAGE, "the cluster has no task of the job %s", SHARD_JOB);
    if (options->schedule == SCHEDULE_TWO_LEVEL && (n < 1 || !options->cluster))
        return error_set(r->err, ERR_USAGE,
                         "schedule=two-level goes by the workers' hosts: give the cluster, -c");
    if (options->schedule != SCHEDULE_DIRECT && n > SCHEDULE_MEMBERS_MAX)
        return error_set(r->err, ERR_USAGE, "schedule=%s is for at most %d workers, not %d",
                         schedule_name(options->schedule), SCHEDULE_MEMBERS_MAX, n);
    if (options->schedules && n < 1)
        return error_set(r->err, ERR_USAGE,
                         "schedule=auto depends on the number of workers: give -c or --workers");

    if (n < 1 || options->by_device || options->by_servers ||
        (!options->schedules && !options->explain))
        return 0;
    /* Total of all gradients that the schedule sums. */
    double bytes = 0;
    graph_each(node, r->from) {
        struct edge edge = {node->id, 0};
        if (!node_attr(node, "_gradient") || *replicate_role(node))
            continue;
        double own = replicate_bytes(r, edge);
        if (own > (double)COLLECTIVE_SMALL_BYTES)
            bytes += own;
    }
    for (int kind = SCHEDULE_DIRECT; kind <= SCHEDULE_TWO_LEVEL; kind++) {
        const struct cost_sum_query query = {(enum schedule_kind)kind, "worker", n,
                                             r->options->cluster};
        struct error ignored = ERROR_INIT; /* this schedule is impossible */
        if ((kind == SCHEDULE_TWO_LEVEL && !has_two_levels(r, n)) || n > SCHEDULE_MEMBERS_MAX ||
            cost_schedule(&query, bytes, &costs[kind], &ignored))
            costs[kind].ns = INFINITY;
    }
    for (int kind = SCHEDULE_DIRECT; options->schedules && kind <= SCHEDULE_TWO_LEVEL; kind++)
        if (costs[kind].ns < costs[r->schedule].ns)
            r->schedule = (enum schedule_kind)kind;
    for (int kind = SCHEDULE_DIRECT; kind <= SCHEDULE_TWO_LEVEL && bytes > 0; kind++)
        if (costs[kind].ns < INFINITY)
            replicate_explain(options, "schedule %-10s of %.0f bytes: %.0f sent, %.3f ms%s",
                              schedule_name((enum schedule_kind)kind), bytes, costs[kind].bytes,
                              costs[kind].ns / 1e6, (int)r->schedule == kind ? ", taken" : "");
    return 0;
}

int replicate_schedule_attrs(struct replicator *r, struct attr *attrs)
{
    const struct cluster *cluster = r->options->cluster;
    int n = replicate_workers(r->options);
    const char *name = r->options->by_device            ? by_device_name(r->options->by_device)
                       : r->options->by_servers         ? SCHEDULE_BY_SERVERS
                       : r->schedule != SCHEDULE_DIRECT ? schedule_name(r->schedule)
                                                        : NULL;
    if (!name)
        return 0;
    attrs[0] = (struct attr){"schedule", attr_string(name)};
    if (r->schedule != SCHEDULE_TWO_LEVEL)
        return 1;
    int64_t *hosts = arena_array(&r->arena, (size_t)n + 1, sizeof *hosts);
    for (int i = 0; i < n; i++) {
        const struct cluster_task *task = cluster_find(cluster, "worker", i);
        hosts[i] = task ? task->host : -1 - i; /* an unknown host counts as a separate one */
    }
    attrs[1] = (struct attr){"schedule_hosts", {.kind = ATTR_LIST_INT, .n = n, .ints = hosts}};
    return 2;
}

/* ---- ways ---- */

void replicate_find_ways(struct replicator *r)
{
    const struct cluster *cluster = r->options->cluster;
    int workers = replicate_workers(r->options), n = workers > 0 ? workers : 1;
    int shards = count_shards(r);
    struct exchange_ways *ways = r->ways = arena_alloc(&r->arena, sizeof *ways);
    ways->n = n;
    if (replicate_pushes(r)) {
        const struct cost_shards cost = cost_shards(n, shards, cluster);
        ways->sent = cost.pushes;
        ways->read = cost.reads;
        ways->pushers_beside = cost.pushers_beside;
        return;
    }
    ways->sent = cost_exchange("worker", n, cluster);
    if (!r->options->by_servers)
        return;
    ways->served_sums = cost_served(n, shards, 1, cluster);
    ways->served_rows = cost_served(n, shards, n - 1, cluster);
    /* A step waits for the slower path. */
    ways->sent.latency = fmax(ways->sent.latency, ways->served_sums.latency);
}

static struct cost_sum by_way(const struct replicator *r, double bytes, double per_byte)
{
    return (struct cost_sum){bytes, r->ways->sent.latency + per_byte * bytes};
}

struct cost_sum replicate_gather_way(const struct replicator *r, double bytes)
{
    int n = r->ways->n;
    if (r->options->by_servers && n > 2 && bytes > (double)COLLECTIVE_SMALL_BYTES)
        return by_way(r, bytes, r->ways->served_rows.per_byte);
    return by_way(r, bytes * (n - 1), r->ways->sent.per_byte);
}

/* Excludes the computation of the gradient. */
struct cost_sum replicate_price_whole(const struct replicator *r, const struct exchange *x)
{
    double bytes = replicate_bytes(r, x->edge);
    if (replicate_pushes(r))
        return by_way(r, bytes / (x->is_of_rows ? 1 : x->steps), r->ways->sent.per_byte);
    if (x->is_of_rows || bytes <= (double)COLLECTIVE_SMALL_BYTES)
        return replicate_gather_way(r, bytes);
    if (r->options->by_servers && r->ways->n > 1)
        return by_way(r, bytes, r->ways->served_sums.per_byte);
    const struct cost_sum_query query = {r->schedule, "worker", r->ways->n, r->options->cluster};
    struct cost_sum sum;
    struct error ignored = ERROR_INIT; /* then the direct schedule is used */
    if (r->schedule != SCHEDULE_DIRECT && !cost_schedule(&query, bytes, &sum, &ignored))
        return sum;
    return by_way(r, bytes * (2.0 * (r->ways->n - 1) / r->ways->n), r->ways->sent.per_byte);
}
