/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs of nodes: measured, or estimated from what ops declare. Times of transfers between devices
 * and tasks. Rates are those of one ordinary machine: an estimate serves to compare devices and
 * links; measured times replace or scale it.
 */
#include "pass/place/cost.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graph/frames.h"

/* ---- estimates ---- */

struct cost_rates cost_rates_of(const char *type, const struct device_facts *facts)
{
    struct cost_rates rates = {.operations = 10e12, .bandwidth = 500e9, .overhead = 5000};
    if (!strcmp(type, "CPU"))
        rates = (struct cost_rates){.operations = 40e9, .bandwidth = 8e9, .overhead = 500};
    if (facts && facts->operations > 0)
        rates.operations = facts->operations;
    if (facts && facts->bandwidth > 0)
        rates.bandwidth = facts->bandwidth;
    return rates;
}

bool cost_is_view(const struct cost_query *query)
{
    struct op_cost cost = cost_of(query);
    return !cost.is_free && !cost.bytes;
}

double cost_estimate_ns(const struct cost_query *query, const struct cost_rates *rates)
{
    struct op_cost cost = cost_of(query);
    double compute = cost.operations / rates->operations, move = cost.bytes / rates->bandwidth;
    return cost.is_free ? 0 : rates->overhead + 1e9 * (compute > move ? compute : move);
}

/* ---- scaled estimates ---- */

#define LOOP_STEPS 10.0 /* iterations of a loop, unless measured */

int cost_weights(const struct graph *graph, double *weights, struct error *err)
{
    struct frames *frames;
    int code = frames_new(graph, &frames, err);
    for (size_t i = 0; !code && i < graph->nodes.n; i++) {
        weights[i] = 1;
        for (int d = frames->frames.items[frames->frame[i]].depth; d > 0; d--)
            weights[i] *= LOOP_STEPS;
    }
    if (!code)
        frames_free(frames);
    return code;
}

static double find_scale(const struct cost_sample *sample, const char *type,
                         const struct cost_rates *rates)
{
    double measured = 0, estimated = 0, ns;
    for (size_t i = 0; i < sample->graph->nodes.n; i++) {
        const struct cost_query query = {graph_node(sample->graph, (int)i), sample->graph,
                                         sample->assume};
        const struct costs *costs = sample->measured;
        if (!costs_find_own(costs, query.node, type, &ns) &&
            !(sample->has_untyped && costs_find_own(costs, query.node, NULL, &ns)))
            continue;
        measured += ns;
        estimated += sample->weights[i] * cost_estimate_ns(&query, rates);
    }
    return measured > 0 && estimated > 0 ? measured / estimated : 1;
}

struct cost_rates cost_scaled_rates(const struct cost_sample *sample, const char *type,
                                    const struct device_facts *facts)
{
    struct cost_rates rates = cost_rates_of(type, facts);
    bool has_operations = facts && facts->operations > 0;
    bool has_bandwidth = facts && facts->bandwidth > 0;
    double scale = find_scale(sample, type, &rates);
    rates.operations /= has_operations ? 1 : scale;
    rates.bandwidth /= has_bandwidth ? 1 : scale;
    rates.overhead *= has_operations || has_bandwidth ? 1 : scale;
    return rates;
}

void cost_scale_cores(struct cluster *cluster, const struct graph *graph,
                      const struct costs *measured, int64_t assume)
{
    double *weights = mem_array(graph->nodes.n + 1, sizeof *weights);
    bool only_cpus = true;
    for (size_t i = 0; i < cluster->devices.n; i++)
        only_cpus &= !strcmp(cluster->devices.items[i].type, "CPU");
    const struct cost_sample sample = {graph, measured, weights, assume, only_cpus};
    const struct cost_rates rates = cost_rates_of("CPU", NULL);
    struct error ignored = ERROR_INIT; /* the graph's user will find what is wrong with it */
    if (!cost_weights(graph, weights, &ignored))
        cluster->core_time = find_scale(&sample, "CPU", &rates);
    mem_free(weights);
}

/* ---- transfers: links, adapters, and the cores that send ---- */

/* CPU time per byte and per message that a task sends, and the same for receiving: the system's
 * copies, packets and wake-ups, checksums, and the adding of received values. Measured
 * (docs/costs.md). */
#define BYTE_NS 1.5
#define MESSAGE_NS 60e3

/* ---- computing cores ---- */

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

/* ---- traffic ---- */

/* The tasks 0 to n - 1 of a job. */
struct tasks {
    const char *job;
    int n;
};

/* Traffic of each of the tasks, sent plus received: messages, or bytes. */
struct cost_traffic {
    struct tasks tasks;
    double each;
    const double *by_task; /* in place of `each`; NULL: equal for all */
};

/* Extends a route by the time of shared cores, for its latency (per message) and its bytes, given
 * the tasks' traffic per message or byte of one to one: the traffic per core on the most loaded
 * machine counts, and a task's is handled by one thread. Cores work on a part of the data while
 * other parts are being sent: if links and cores alone would take w and c, bytes take sqrt(w^2 +
 * c^2) (docs/costs.md). Messages wait for both. */
static struct cost_way on_cores(struct cost_way way, const struct cost_traffic *traffic,
                                int n_traffic, const struct cluster *cluster)
{
    double each = 0;
    for (int i = 0; cluster && i < (int)cluster->hosts.n; i++) {
        int cores = cluster->hosts.items[i].cores;
        double all = 0; /* of the machine's tasks */
        for (int k = 0; cores && k < n_traffic; k++) {
            for (int j = 0; j < traffic[k].tasks.n; j++) {
                const struct cluster_task *task = cluster_find(cluster, traffic[k].tasks.job, j);
                double own = traffic[k].by_task ? traffic[k].by_task[j] : traffic[k].each;
                if (!task || cluster_machine(cluster, task->host) != i)
                    continue;
                all += own;
                each = fmax(each, own);
            }
        }
        each = cores ? fmax(each, all / cores) : each;
    }
    if (cluster && cluster->core_time > 0)
        each *= cluster->core_time;
    return (struct cost_way){way.latency + MESSAGE_NS * each, hypot(way.per_byte, BYTE_NS * each)};
}

/* ---- one route ---- */

#define NS 1e9

/* Between devices of one task: threads wake each other; an accelerator's memory is behind a bus. */
#define NEAR_LATENCY 2e3
#define BUS_LATENCY 10e3
#define BUS_BYTES 12e9 /* a second */

/* How much longer flows from several hosts to one adapter take than a single flow of as many bytes:
 * data that does not fit in the queue before the adapter is sent again. Measured by make
 * bench-techniques (docs/costs.md). */
#define MEETING_LOSS 1.3

static const struct cluster_task *task_of(const struct cluster *cluster,
                                          const struct device_name *name)
{
    return cluster ? cluster_find(cluster, name->job, name->task) : NULL;
}

/* Returns nanoseconds per byte over the device's bus; 0 for a CPU. */
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

/* Returns the route between the CPUs of two tasks. */
static struct cost_way task_way(const char *job, int task, const char *to_job, int to_task,
                                const struct cluster *cluster)
{
    struct device_name from = {.task = task, .type = "CPU"}, to = {.task = to_task, .type = "CPU"};
    snprintf(from.job, sizeof from.job, "%s", job);
    snprintf(to.job, sizeof to.job, "%s", to_job);
    return cost_way(&from, &to, cluster, NULL);
}

/* ---- exchanges ---- */

/* Counts the tasks that are in the cluster: on one host, or (-1) on all. */
static int count_tasks(struct tasks tasks, const struct cluster *cluster, int host)
{
    int count = 0;
    for (int i = 0; i < tasks.n; i++) {
        const struct cluster_task *task = cluster_find(cluster, tasks.job, i);
        count += task && (host < 0 || task->host == host);
    }
    return count;
}

/* Time for `flows` simultaneous flows of `bytes` each to pass an adapter. Concurrent flows lose
 * packets, so they take longer than their bytes alone. */
static double adapter_ns(double flows, double bytes, double bandwidth)
{
    return NS * flows * bytes * (flows > 1 ? MEETING_LOSS : 1) / bandwidth;
}

/* ---- between tasks, all at once ---- */

/* Counts the pairs of one of these tasks and one of the others on different hosts where the first
 * is on `host`. */
static double crossing_pairs(struct tasks these, struct tasks others, const struct cluster *cluster,
                             int host)
{
    /* Who exchanges with tasks that the cluster does not list does so over its adapter. */
    int all = strcmp(these.job, others.job) ? count_tasks(others, cluster, -1) : others.n;
    return count_tasks(these, cluster, host) * (double)(all - count_tasks(others, cluster, host));
}

/* Time for an adapter to send bytes, and at the same time to receive several flows. Flows that it
 * sends wait for each other within the host, so none are lost. */
static double both_ways_ns(double sent, double flows, double got, double bandwidth)
{
    if (bandwidth <= 0)
        return 0;
    double in = flows > 0 ? adapter_ns(flows, got / flows, bandwidth) : 0;
    return fmax(NS * sent / bandwidth, in);
}

/* Returns the slowest link in one direction. */
static struct cost_way slowest_link(struct tasks from, struct tasks to,
                                    const struct cluster *cluster)
{
    struct cost_way slowest = {0};
    bool is_same = !strcmp(from.job, to.job);
    for (int i = 0; i < from.n; i++)
        for (int k = 0; k < to.n; k++) {
            if (is_same && i == k)
                continue;
            struct cost_way way = task_way(from.job, i, to.job, k, cluster);
            slowest.latency = fmax(slowest.latency, way.latency);
            slowest.per_byte = fmax(slowest.per_byte, way.per_byte);
        }
    return slowest;
}

/* Returns the route of a byte that each of `from` sends to each of `to`, without cores, and whether
 * hosts with only shards are its bottleneck. Bytes that workers push to such a host, and that are
 * lost before it, cost no time: other flows keep the adapter busy meanwhile. */
static struct cost_way each_to_each(struct tasks from, struct tasks to,
                                    const struct cluster *cluster, bool *waits_for_shards)
{
    struct tasks workers = strcmp(from.job, SHARD_JOB) ? from : to;
    struct cost_way slowest = slowest_link(from, to, cluster);
    double shards = 0;
    for (int i = 0; cluster && i < (int)cluster->hosts.n; i++) {
        bool has_workers = count_tasks(workers, cluster, i) > 0;
        double out = crossing_pairs(from, to, cluster, i),
               in = crossing_pairs(to, from, cluster, i);
        double *most = has_workers ? &slowest.per_byte : &shards;
        *most = fmax(*most, both_ways_ns(out, has_workers ? in : fmin(in, 1), in,
                                         cluster->hosts.items[i].bandwidth));
    }
    *waits_for_shards = shards > 0 && shards >= slowest.per_byte;
    slowest.per_byte = fmax(slowest.per_byte, shards);
    return slowest;
}

struct cost_way cost_exchange(const char *job, int n, const struct cluster *cluster)
{
    struct tasks all = {job, n};
    const struct cost_traffic traffic = {all, 2.0 * (n - 1), NULL};
    bool ignored;
    struct cost_way way = on_cores(each_to_each(all, all, cluster, &ignored), &traffic, 1, cluster);
    way.per_byte /= n > 1 ? n - 1 : 1;
    return way;
}

/* Adds the time of shared cores, where each sends a byte to each of the others and gets `back`
 * bytes. */
static struct cost_way with_cores(struct cost_way way, struct tasks these, struct tasks others,
                                  double back, const struct cluster *cluster)
{
    const struct cost_traffic traffic[] = {{these, others.n * (1 + back), NULL},
                                           {others, these.n * (1 + back), NULL}};
    return on_cores(way, traffic, 2, cluster);
}

struct cost_shards cost_shards(int n, int shards, const struct cluster *cluster)
{
    struct tasks workers = {"worker", n}, all = {SHARD_JOB, shards};
    bool pushes_wait, reads_wait;
    struct cost_way pushes = each_to_each(workers, all, cluster, &pushes_wait);
    struct cost_way reads = each_to_each(all, workers, cluster, &reads_wait);
    struct cost_shards cost = {with_cores(pushes, workers, all, 0, cluster),
                               with_cores(reads, workers, all, 0, cluster),
                               pushes_wait && reads_wait ? (n - 1.0) / n : 0};
    cost.pushes.per_byte /= shards;
    cost.reads.per_byte /= shards;
    return cost;
}

double cost_beside_reads(double share, double pushes, double reads)
{
    return share * fmin(pushes, reads / 2);
}

/* A host with workers and shards sends its workers' requests and its shards' replies, and receives
 * both. */
struct cost_way cost_served(int n, int shards, double back, const struct cluster *cluster)
{
    struct tasks workers = {"worker", n}, all = {SHARD_JOB, shards};
    struct cost_way slowest = slowest_link(workers, all, cluster);
    slowest.per_byte *= fmax(1, back);
    for (int i = 0; cluster && i < (int)cluster->hosts.n; i++) {
        double asks = crossing_pairs(workers, all, cluster, i);
        double replies = crossing_pairs(all, workers, cluster, i);
        slowest.per_byte =
            fmax(slowest.per_byte,
                 both_ways_ns(asks + back * replies, asks + replies, replies + back * asks,
                              cluster->hosts.items[i].bandwidth));
    }
    slowest = with_cores(slowest, workers, all, back, cluster);
    slowest.per_byte /= shards;
    return slowest;
}

/* ---- sums by a schedule ----
 *
 * The time of a sum by a schedule: per round, the longest of its flows and of the traffic of one
 * adapter; plus the latency of the rounds of one piece, as those of later pieces overlap. The time
 * of shared cores is included. */

#define PIECE_BYTES (64 << 10) /* smallest separately sent piece */
#define PIECES_MAX 96

int cost_schedule(const struct cost_sum_query *query, double bytes, struct cost_sum *cost,
                  struct error *err)
{
    const struct cluster *cluster = query->cluster;
    size_t n = (size_t)query->n, n_hosts = cluster ? cluster->hosts.n : 0;
    struct sum_schedule least = {0}, schedule = {0};
    struct schedule_request request = {.kind = query->kind, .n_members = query->n};
    struct arena arena = ARENA_INIT;
    struct cost_way *ways = arena_array(&arena, n * n, sizeof *ways); /* [from * n + to] */
    struct cost_way all = {0, 0}, waits = {0, 0};
    int *hosts = arena_array(&arena, n, sizeof *hosts); /* by task; -1: unknown */
    for (size_t i = 0; i < n; i++) {
        const struct cluster_task *task =
            cluster ? cluster_find(cluster, query->job, (int)i) : NULL;
        hosts[i] = task ? task->host : -1;
        for (size_t k = 0; k < n; k++) {
            ways[i * n + k] = task_way(query->job, (int)i, query->job, (int)k, cluster);
            waits.latency = i == k ? waits.latency : fmax(waits.latency, ways[i * n + k].latency);
        }
    }
    request.hosts = cluster ? hosts : NULL;
    int code = schedule_make(&request, &least, err);
    double piece_bytes = 0;
    if (!code) {
        /* More pieces than the minimum overlap, if they are large. */
        double most = bytes / PIECE_BYTES < PIECES_MAX ? bytes / PIECE_BYTES : PIECES_MAX;
        int each = (int)(most / least.n_pieces);
        request.n_pieces = least.n_pieces * (each > 1 ? each : 1);
        piece_bytes = bytes / request.n_pieces;
        code = schedule_make(&request, &schedule, err);
    }
    /* By host, in a round: flows to others, and from them. By task: bytes that it sends, all that
     * it passes, and messages of one piece each. */
    double *out = arena_array(&arena, n_hosts, sizeof *out);
    double *in = arena_array(&arena, n_hosts, sizeof *in);
    double *sent = arena_array(&arena, n, sizeof *sent);
    double *passed = arena_array(&arena, n, sizeof *passed);
    double *messages = arena_array(&arena, n, sizeof *messages);
    size_t i = 0;
    for (int round = 0; !code && round < schedule.n_rounds; round++) {
        double ns = 0;
        for (; i < schedule.flows.n && schedule.flows.items[i].round == round; i++) {
            const struct schedule_flow *flow = &schedule.flows.items[i];
            int from = hosts[flow->from], to = hosts[flow->to];
            ns = fmax(ns, ways[(size_t)flow->from * n + (size_t)flow->to].per_byte * piece_bytes);
            sent[flow->from] += piece_bytes;
            passed[flow->from] += piece_bytes;
            passed[flow->to] += piece_bytes;
            if (from < 0 || to < 0 || from == to)
                continue;
            out[from]++;
            in[to]++;
        }
        /* A round takes as long as its slowest adapter; the counts then restart. */
        for (size_t h = 0; h < n_hosts; h++) {
            double bandwidth = cluster->hosts.items[h].bandwidth;
            if (bandwidth > 0)
                ns = fmax(ns, adapter_ns(fmax(out[h], in[h]), piece_bytes, bandwidth));
            out[h] = in[h] = 0;
        }
        all.per_byte += ns;
    }
    vec_each(flow, &least.flows) {
        messages[flow->from]++;
        messages[flow->to]++;
    }
    if (!code) {
        const struct cost_traffic data = {{query->job, query->n}, 0, passed};
        const struct cost_traffic ends = {{query->job, query->n}, 0, messages};
        waits.latency *= least.n_rounds;
        cost->ns =
            on_cores(all, &data, 1, cluster).per_byte + on_cores(waits, &ends, 1, cluster).latency;
        cost->bytes = 0;
        for (size_t k = 0; k < n; k++)
            cost->bytes = fmax(cost->bytes, sent[k]);
    }
    schedule_release(&schedule);
    schedule_release(&least);
    arena_release(&arena);
    return code;
}
