/* SPDX-License-Identifier: Apache-2.0
 *
 * Which values are exchanged, and how each crosses: whole, in code, or as factors, where these take
 * less time.
 *
 * With all-reduce a worker sends 2 (n - 1) / n of a gradient, and n - 1 times small values and a
 * table's rows. To shards it sends each gradient once a push, and shards share the computation.
 * Shards that only add receive a gradient, and rows, once, and at the same time send each worker
 * the sum, or the others' rows.
 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "collective/schedule.h"
#include "graph/op_cost.h"
#include "graph/worker_attr.h"
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
    struct node_output output = *graph_output(r->w.from, edge);
    if (output.type == FLOAT32 && r->options->wire != DTYPE_INVALID)
        output.type = r->options->wire;
    return cost_bytes(&output, r->options->assume);
}

int replicate_find_rates(struct replicator *r)
{
    const struct device_name worker = {.job = "worker", .type = "CPU"};
    const struct device_facts facts =
        cost_facts(&worker, r->options->cluster, r->options->measured);
    double *weights = arena_array(&r->w.arena, r->w.from->nodes.n + 1, sizeof *weights);
    const struct cost_sample sample = {.graph = r->w.from,
                                       .measured = r->options->measured,
                                       .weights = weights,
                                       .assume = r->options->assume,
                                       .has_untyped = true};
    if (!cost_weights(r->w.from, weights, r->w.err))
        r->rates = cost_scaled_rates(&sample, "CPU", &facts);
    return r->w.err->code;
}

double replicate_node_ns(const struct replicator *r, const struct node *node)
{
    const struct cost_query query = {node, r->w.from, r->options->assume};
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

static int choose_schedule(struct replicator *r)
{
    const struct replicate_options *options = r->options;
    int n = replicate_workers(r->options);
    struct cost_sum costs[SCHEDULE_TWO_LEVEL + 1] = {{0}};
    r->schedule = options->schedule;

    if (options->by_servers && options->cluster && !cluster_count(options->cluster, SHARD_JOB))
        return error_set(r->w.err, ERR_USAGE, "the cluster has no task of the job %s", SHARD_JOB);
    if (options->schedule == SCHEDULE_TWO_LEVEL && (n < 1 || !options->cluster))
        return error_set(r->w.err, ERR_USAGE,
                         "schedule=two-level goes by the workers' hosts: give the cluster, -c");
    if (options->schedule != SCHEDULE_DIRECT && n > SCHEDULE_MEMBERS_MAX)
        return error_set(r->w.err, ERR_USAGE, "schedule=%s is for at most %d workers, not %d",
                         schedule_name(options->schedule), SCHEDULE_MEMBERS_MAX, n);
    if (options->schedules && n < 1)
        return error_set(r->w.err, ERR_USAGE,
                         "schedule=auto depends on the number of workers: give -c or --workers");

    if (n < 1 || options->by_device || options->by_servers ||
        (!options->schedules && !options->explain))
        return 0;
    /* Total of all gradients that the schedule sums. */
    double bytes = 0;
    graph_each(node, r->w.from) {
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
        if (options->schedules && costs[kind].ns < costs[r->schedule].ns)
            r->schedule = (enum schedule_kind)kind;
    }
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
    int64_t *hosts = arena_array(&r->w.arena, (size_t)n + 1, sizeof *hosts);
    for (int i = 0; i < n; i++) {
        const struct cluster_task *task = cluster_find(cluster, "worker", i);
        hosts[i] = task ? task->host : -1 - i; /* an unknown host counts as a separate one */
    }
    attrs[1] = (struct attr){"schedule_hosts", {.kind = ATTR_LIST_INT, .n = n, .ints = hosts}};
    return 2;
}

/* ---- ways ---- */

static void find_ways(struct replicator *r)
{
    const struct cluster *cluster = r->options->cluster;
    int workers = replicate_workers(r->options), n = workers > 0 ? workers : 1;
    int shards = count_shards(r);
    struct exchange_ways *ways = r->ways = arena_alloc(&r->w.arena, sizeof *ways);
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

/* ---- the choice ---- */

static const struct technique *const techniques[] = {
    [CROSSES_WHOLE] = &replicate_whole,
    [CROSSES_BY_FACTORS] = &replicate_factors,
    [CROSSES_IN_CODE] = &replicate_code,
};

/* Returns the shape of the whole variable, of which each worker has a part; NULL: it is shared. */
static const struct attr_value *shape_of_parts(const struct exchange *x)
{
    return x->variable ? node_attr(x->variable, WORKER_PART_SHAPE) : NULL;
}

static void choose(struct replicator *r, struct exchange *x)
{
    x->crossing = CROSSES_NOT;
    for (int i = CROSSES_BY_FACTORS; i < CROSSES_NOT; i++)
        x->why_not[i] = "each worker has a part of it";
    if (shape_of_parts(x))
        return;
    double read_ns = 0, steps = r->options->average ? x->steps : 1;
    if (replicate_pushes(r) && x->variable) {
        /* A worker reads the variable, or the rows that have a gradient, from shards. */
        struct edge value = x->is_of_rows ? x->edge : replicate_out(x->variable->id);
        double bytes = replicate_bytes(r, value) / (r->options->fetch > 1 ? r->options->fetch : 1);
        read_ns = r->ways->read.per_byte * bytes;
    }
    for (int i = CROSSES_WHOLE; i < CROSSES_NOT; i++) {
        struct cost_sum *way = &x->ways[i];
        x->why_not[i] = techniques[i]->refuse ? techniques[i]->refuse(r, x) : NULL;
        if (x->why_not[i])
            continue;
        *way = techniques[i]->price(r, x);
        *way = (struct cost_sum){way->bytes / steps, way->ns / steps};
        /* A push while others still read takes no time of its own. */
        way->ns -= cost_beside_reads(r->ways->pushers_beside, r->ways->sent.per_byte * way->bytes,
                                     read_ns);
    }
    if (!x->why_not[CROSSES_BY_FACTORS]) {
        /* Otherwise each worker has to compute its own product. */
        double ns = replicate_workers_ns(r, replicate_node_ns(r, x->product));
        x->ways[CROSSES_WHOLE].ns += ns;
        x->ways[CROSSES_IN_CODE].ns += ns;
    }
    bool codes = !x->why_not[CROSSES_IN_CODE] &&
                 (!r->options->may_code || x->ways[CROSSES_IN_CODE].ns < x->ways[CROSSES_WHOLE].ns);
    x->crossing = codes ? CROSSES_IN_CODE : CROSSES_WHOLE;
    bool factors = r->options->factors == FACTORS_ALL ||
                   (r->options->factors == FACTORS_AUTO &&
                    x->ways[CROSSES_BY_FACTORS].ns < x->ways[x->crossing].ns);
    if (factors && !x->why_not[CROSSES_BY_FACTORS])
        x->crossing = CROSSES_BY_FACTORS;
    x->technique = techniques[x->crossing];
    r->exchange_ns += x->ways[x->crossing].ns - r->ways->sent.latency / steps + read_ns;
}

/* Latencies of a step besides the values themselves; they count once, however many gradients cross:
 * variables are read, gradients pushed, and the push replied to; or gradients go to the summing
 * worker, and sums come back. */
#define SYNC_LATENCIES 3
#define ALLREDUCE_LATENCIES 2

static void choose_all(struct replicator *r)
{
    bool has_parts = false;
    vec_each(x, &r->planned) {
        choose(r, *x);
        has_parts |= (*x)->crossing == CROSSES_NOT;
    }
    r->exchange_ns +=
        r->ways->sent.latency *
        (r->options->mode == REPLICATE_POLICY ? SYNC_LATENCIES : ALLREDUCE_LATENCIES) /
        (r->options->average ? r->options->average : 1);
    if (r->mode)
        replicate_explain(r->options, "%s:", r->mode);
    replicate_explain(r->options, "%-24s %-14s %11s %9s %11s %9s %11s %9s  %s", "VARIABLE", "SHAPE",
                      "BYTES", "MS", "FACTORS", "MS", "CODE", "MS", "SENT");
    vec_each(at, &r->planned) {
        const struct exchange *x = *at;
        const char *name = replicate_gradient_of(x->node);
        const struct attr_value *whole = shape_of_parts(x);
        struct str ways = STR_INIT;
        for (int i = CROSSES_WHOLE; i < CROSSES_NOT; i++)
            if (x->why_not[i])
                str_printf(&ways, " %11s %9s", "-", "-");
            else
                str_printf(&ways, " %11.0f %9.3f", x->ways[i].bytes, x->ways[i].ns / 1e6);
        const char *why = x->why_not[CROSSES_IN_CODE] ? x->why_not[CROSSES_BY_FACTORS] : NULL;
        replicate_explain(r->options, "%-24s %-14s%s  %s%s%s", name ? name : x->node->name,
                          shape_text(whole ? whole->shape : &x->output->shape), str_text(&ways),
                          x->technique ? x->technique->name : "nothing", why ? ": " : "",
                          why ? why : "");
        str_release(&ways);
    }
    if (!r->mode && !has_parts)
        replicate_explain(r->options, "exchange of a step: %.3f ms", r->exchange_ns / 1e6);
}

/* ---- the order in which values become known ----
 *
 * The order in which a step comes to know the values to exchange: by the time of their
 * dependencies, as if nothing waited for a processor. The order of nodes in the graph says less:
 * the gradient of the first layer, which needs all of back-propagation, may precede those of other
 * layers there. */

static int by_time(const void *a, const void *b)
{
    const struct exchange *x = *(struct exchange *const *)a, *y = *(struct exchange *const *)b;
    return x->known_ns != y->known_ns ? (x->known_ns > y->known_ns) - (x->known_ns < y->known_ns)
                                      : x->place - y->place;
}

static void plan_by_time(struct replicator *r)
{
    /* By node: the earliest time at which its values exist. */
    double *times = arena_array(&r->w.arena, r->w.from->nodes.n + 1, sizeof *times);
    graph_each_ordered(node, r->w.from, r->w.order) {
        double begin = 0;
        for (int k = 0; k < node->n_inputs + node->n_controls; k++)
            begin = fmax(begin, times[node_dependency(node, k).node]);
        times[node->id] = begin + replicate_node_ns(r, node);
        for (int slot = 0; slot < node->n_outputs; slot++) {
            struct exchange *x = replicate_exchange(r, (struct edge){node->id, slot});
            if (!x)
                continue;
            x->known_ns = times[node->id];
            x->place = (int)r->planned.n;
            vec_push_in(&r->w.arena, &r->planned, x);
        }
    }
    /* The numbers of rows are of no use, and so no more urgent, before the rows are known. */
    vec_each(push, &r->pushes) {
        vec_each(rows, &push->exchanges) {
            for (size_t i = 0; i < push->exchanges.n && (*rows)->is_of_rows; i++)
                if (push->exchanges.items[i]->variable == (*rows)->variable)
                    (*rows)->known_ns = fmax((*rows)->known_ns, push->exchanges.items[i]->known_ns);
        }
    }
    qsort(r->planned.items, r->planned.n, sizeof *r->planned.items, by_time);
}

int replicate_plan(struct replicator *r)
{
    const struct replicate_options *options = r->options;
    bool pushes = replicate_pushes(r);
    if (!pushes && (options->accumulate > 1 || options->wire != DTYPE_INVALID))
        return error_set(
            r->w.err, ERR_USAGE, "--%s is for what is pushed to shards; with --mode %s %s",
            options->accumulate > 1 ? "accumulate" : "compress", replicate_mode_name(options),
            options->by_servers ? "nothing is" : "there are none");
    if (options->factors == FACTORS_AUTO && replicate_workers(options) < 1)
        return error_set(r->w.err, ERR_USAGE,
                         "factors=auto depends on the number of workers: give -c or --workers");
    if (replicate_find(r) || (!pushes && choose_schedule(r)))
        return r->w.err->code;
    find_ways(r);
    if (options->average && replicate_plan_averages(r))
        return r->w.err->code;
    if (!pushes && !options->average)
        plan_by_time(r);
    vec_each(push, &r->pushes) {
        for (size_t k = 0; pushes && k < push->exchanges.n; k++)
            vec_push_in(&r->w.arena, &r->planned, push->exchanges.items[k]);
    }
    choose_all(r);
    if (pushes)
        return replicate_check_sums(r);
    /* Nodes after a reduction or an initializer are copied late. */
    graph_each_ordered(node, r->w.from, r->w.order) {
        bool late = replicate_is_initializer(r, node);
        for (int k = 0; k < node->n_inputs + node->n_controls; k++) {
            struct edge edge = node_dependency(node, k);
            const struct exchange *x = k < node->n_inputs ? replicate_exchange(r, edge) : NULL;
            late |= has(r, edge.node, FACT_AFTER) ||
                    (has(r, node->id, FACT_UPDATE) && x && x->crossing != CROSSES_NOT);
        }
        r->facts[node->id] &= ~(unsigned)FACT_AFTER;
        r->facts[node->id] |= late ? FACT_AFTER : 0;
    }
    return replicate_check_late(r, "an initial value");
}
