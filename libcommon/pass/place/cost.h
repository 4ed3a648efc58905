/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost of a node: its computing time in nanoseconds, and the bytes of its results. Measured, if
 * a file of costs (docs/costs.md) has the node or its op; else estimated from what the op declares
 * (graph/op_cost.h):
 *
 *     time = overhead + max(operations / rate, bytes read and written / bandwidth)
 *
 * An unknown dimension counts as `assume`.
 */
#ifndef TF_PASS_COST_H
#define TF_PASS_COST_H

#include "collective/schedule.h"
#include "graph/costs.h"
#include "graph/op_cost.h"

/* The rates of a device with speed 1. */
struct cost_rates {
    double operations; /* per second */
    double bandwidth;  /* bytes per second between a kernel and memory */
    double overhead;   /* nanoseconds per call */
};

/* Returns the rates of a type of device ("CPU"), where the facts (NULL: none) do not state them. */
struct cost_rates cost_rates_of(const char *type, const struct device_facts *facts);

/* Returns an estimate. Nodes that do not run (Const, Variable, Placeholder, NoOp) cost nothing. */
double cost_estimate_ns(const struct cost_query *query, const struct cost_rates *rates);

/* Returns whether the results share the inputs' memory or are a few numbers. */
bool cost_is_view(const struct cost_query *query);

/* The route from one device to another: nanoseconds, and nanoseconds per byte. */
struct cost_way {
    double latency, per_byte;
};

/* Returns the route between two devices with full names. Between tasks it is the cluster's link;
 * without a cluster (NULL), or without the tasks in it, the default link. To and from an
 * accelerator of the same task it is its bus, by the facts of cluster and costs (NULL: none). */
struct cost_way cost_way(const struct device_name *from, const struct device_name *to,
                         const struct cluster *cluster, const struct costs *costs);

/* The route of an exchange: each of the tasks 0 to n - 1 of a job sends every other one equally
 * many bytes, all at once, over the links and through the hosts' adapters. Bytes are what one task
 * sends to all others together. Here and in the functions below, cores that tasks share count, if
 * the cluster states their number. */
struct cost_way cost_exchange(const char *job, int n, const struct cluster *cluster);

/* The routes between workers and shards: of pushes, where each of the tasks 0 to n - 1 of the job
 * `worker` sends the bytes to all shards together, evenly, all at once; and back, for the bytes
 * that each worker reads from all shards. And the share of workers that may push while others read:
 * if everything waits for the shards' adapters, which send and receive at the same time, this is
 * all workers but the last, (n - 1) / n; otherwise 0. */
struct cost_shards {
    struct cost_way pushes, reads;
    double pushers_beside;
};
struct cost_shards cost_shards(int n, int shards, const struct cluster *cluster);
/* Returns, for that share, how much of the pushes is over when the last worker has read, given the
 * time that each would take alone. If shards send to one worker after the other, the first has read
 * after an n-th of the time; if to all at once, only in the end. Network queues decide between
 * these: on average (n - 1) / 2n of the time is left. */
double cost_beside_reads(double share, double pushes, double reads);

/* The route if shards reply at once to what workers send, with `back` bytes per byte: sums, and
 * rows of all others. It takes as long as the busier direction, of links and of adapters. */
struct cost_way cost_served(int n, int shards, double back, const struct cluster *cluster);

/* A sum by a collective schedule among the tasks 0 to n - 1 of a job. */
struct cost_sum_query {
    enum schedule_kind kind;
    const char *job;
    int n;
    const struct cluster *cluster; /* NULL: default links */
};

struct cost_sum {
    double bytes; /* sent by the task that sends most */
    double ns;
};

/* Computes the time of a schedule for that many bytes. ERR_DATA: the tasks cannot use it. */
int cost_schedule(const struct cost_sum_query *query, double bytes, struct cost_sum *cost,
                  struct error *err);

/* ---- cores ----
 *
 * CPU time of a machine for the work of its tasks, if the cluster states the number of cores
 * (graph/cluster.h): tasks on one host, and on hosts that run on it, share them. Otherwise each
 * task has cores of its own, and nothing here takes time. */

/* Returns the fraction of a core for each CPU of the host while all of its kind on the machine
 * compute: shards, or all others. These wait for each other and do not compute at the same time. */
double cost_core_share(const struct cluster *cluster, int host, bool of_shards);
/* Returns the least share of the tasks 0 to n - 1 of a job; 1 without a cluster (NULL). */
double cost_least_share(const char *job, int n, const struct cluster *cluster);

/* ---- measurements ----
 *
 * Scales the estimates of nodes that were not measured by the ratio of measured to estimated time,
 * summed over the nodes that were. */

/* Estimates how often each node runs per step, as far as the graph shows: once, ten times in a
 * loop, a hundred times in a loop within a loop. */
int cost_weights(const struct graph *graph, double *weights, struct error *err);

/* A graph, and measurements of it. */
struct cost_sample {
    const struct graph *graph;
    const struct costs *measured; /* NULL: none */
    const double *weights;        /* by node */
    int64_t assume;
    bool has_untyped; /* times without a type also count for the requested type */
};

/* Returns the rates of a type of device; what its facts (NULL: none) state stays as it is. */
struct cost_rates cost_scaled_rates(const struct cost_sample *sample, const char *type,
                                    const struct device_facts *facts);

/* Sets how much longer the cores of a cluster's hosts take for exchanges. Times without a type
 * count if all devices of the cluster are CPUs. */
void cost_scale_cores(struct cluster *cluster, const struct graph *graph,
                      const struct costs *measured, int64_t assume);

#endif
