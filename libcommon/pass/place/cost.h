/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node costs: nanoseconds that it computes, and bytes that its results have. Measured where
 * a file of costs (docs/costs.md) has the node or its op, else estimated from what the op declares
 * (graph/op_cost.h):
 *
 *     time = overhead + max(operations / rate, bytes read and written / bandwidth)
 *
 * An unknown dimension counts as `assume`.
 */
#ifndef TF_PASS_COST_H
#define TF_PASS_COST_H

#include "base/map.h"
#include "collective/schedule.h"
#include "graph/cluster.h"
#include "graph/op_cost.h"

struct costs {
    struct map nodes, ops; /* "NAME", "NAME TYPE" -> index into ns */
    struct map types;      /* "TYPE" -> index into facts */
    VEC(double) ns;
    VEC(struct device_facts) facts;
    struct arena arena;
};

/* Reads a file of costs into what is zero-initialised. ERR_NOINPUT, or ERR_DATA "FILE:LINE: what".
 */
int costs_read(struct costs *costs, const char *path, struct error *err);
int costs_parse(struct costs *costs, const char *text, const char *name, struct error *err);
void costs_release(struct costs *costs);

/* The measured time of a node in a step, the mean of its op if it was not seen itself: on that type
 * of device, or else where no type was said. False: neither was. `costs` NULL: nothing was. */
bool costs_find(const struct costs *costs, const struct node *node, const char *type, double *ns);

/* What is known of a device: as the cluster says, and where it says nothing as the costs do of its
 * type. Either may be NULL. */
struct device_facts cost_facts(const struct device_name *device, const struct cluster *cluster,
                               const struct costs *costs);

/* The rates of a device of speed 1. */
struct cost_rates {
    double operations; /* a second */
    double bandwidth;  /* bytes a second, between a kernel and memory */
    double overhead;   /* nanoseconds a call */
};

/* The rates of a type of device ("CPU"), as far as the facts do not say (NULL: there are none). */
struct cost_rates cost_rates_of(const char *type, const struct device_facts *facts);

/* An estimate. Nodes that are not run (Const, Variable, Placeholder, NoOp) cost nothing. */
double cost_estimate_ns(const struct cost_query *query, const struct cost_rates *rates);

/* The results are memory of the inputs, or a few numbers. */
bool cost_is_view(const struct cost_query *query);

/* The way from one device to another: nanoseconds, and nanoseconds a byte. */
struct cost_way {
    double latency, per_byte;
};

/* Between two full names. Of devices of different tasks the cluster's link; without one (NULL), or
 * without the tasks, the link that is assumed where a cluster says nothing. To and from an
 * accelerator of the same task its bus, as the cluster or the costs (NULL: none) say. */
struct cost_way cost_way(const struct device_name *from, const struct device_name *to,
                         const struct cluster *cluster, const struct costs *costs);

/* The way of an exchange: each of the tasks 0 to n - 1 of a job sends every other one as many
 * bytes, all at once, over the links, and by the adapters of the hosts. The bytes are what one of
 * them sends to all others together. In this and all that follow cores that tasks share, if the
 * cluster says how many, are counted in. */
struct cost_way cost_exchange(const char *job, int n, const struct cluster *cluster);

/* The way of pushes: each of the tasks 0 to n - 1 of the job `worker` sends all shards together
 * those bytes, evenly, all at once. And the way back, of what each worker reads of all shards. */
struct cost_way cost_pushes(int n, int shards, const struct cluster *cluster);
struct cost_way cost_reads(int n, int shards, const struct cluster *cluster);

/* The share of the workers that may push while others read. Where all wait for adapters of shards,
 * these send and get at the same time: all workers but the last, (n - 1) / n. 0 where something
 * else is slower. */
double cost_pushers_beside(int n, int shards, const struct cluster *cluster);
/* With that share, how much of pushes is over by the time at which the last worker has read, of
 * what both would take by themselves. If shards send to one worker after the other, the first has
 * read after an n-th of the time; if to all at once, in the end. Which it is, the network's queues
 * decide: in the middle (n - 1) / 2 n of the time are left. */
double cost_beside_reads(double share, double pushes, double reads);

/* The same of what workers send shards that send each worker something back at once, `back` bytes
 * for each: sums, and rows of all others. As long as the busier direction takes, of links and of
 * adapters. */
struct cost_way cost_served(int n, int shards, double back, const struct cluster *cluster);

/* A sum by a schedule, among the tasks 0 to n - 1 of a job. */
struct cost_sum_query {
    enum schedule_kind kind;
    const char *job;
    int n;
    const struct cluster *cluster; /* NULL: links are those that are assumed */
};

struct cost_sum {
    double bytes; /* that the task sends that sends most */
    double ns;
};

/* The time of a schedule for so many bytes together. ERR_DATA: the tasks have no such one. */
int cost_schedule(const struct cost_sum_query *query, double bytes, struct cost_sum *cost,
                  struct error *err);

/* ---- cores ----
 *
 * What the cores of a machine take for what its tasks do, where the cluster says how many it has
 * (graph/cluster.h): tasks on one host, and on hosts within one, share them. Where it does not say,
 * each task has cores of its own and nothing here takes time. */

/* The part of a core that a CPU of the host has while all of its kind on the machine compute:
 * shards, or all others. These wait for each other, and do not compute at the same time. */
double cost_core_share(const struct cluster *cluster, int host, bool of_shards);
/* The least of the tasks 0 to n - 1 of a job; 1 without a cluster (NULL). */
double cost_least_share(const char *job, int n, const struct cluster *cluster);

/* ---- what was measured ----
 *
 * What measured times of some nodes say of all that was not measured: it takes as much longer than
 * its estimate as these together took longer than theirs. */

/* Estimates how often each node runs in a step, as far as the graph tells: once, in a loop ten
 * times, in a loop within a loop a hundred times. */
int cost_weights(const struct graph *graph, double *weights, struct error *err);

/* A graph, and what was measured of it. */
struct cost_sample {
    const struct graph *graph;
    const struct costs *measured; /* NULL: nothing */
    const double *weights;        /* by node */
    int64_t assume;
    bool has_untyped; /* times without a type are of devices of the type that is asked for, too */
};

/* The rates of a type of device; what its facts (NULL: there are none) say stays as it is. */
struct cost_rates cost_scaled_rates(const struct cost_sample *sample, const char *type,
                                    const struct device_facts *facts);

/* Sets by how much the cores of a cluster's hosts take longer for exchanges. Times without a type
 * count where all of the cluster's devices are CPUs. */
void cost_scale_cores(struct cluster *cluster, const struct graph *graph,
                      const struct costs *measured, int64_t assume);

#endif
