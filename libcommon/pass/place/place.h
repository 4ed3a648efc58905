/* SPDX-License-Identifier: Apache-2.0
 *
 * Placement: every node gets a device that matches its request, together with the nodes that it
 * must share a device with, on a device for which all of them have a kernel. Nodes share a device
 * if a group in their `_class` attributes says so ("loc:@w"), or if the reference of a variable or
 * the handle of a resource (for example a stack) connects them.
 *
 * If several devices are possible, a group gets the one that a node of it had before, if it may
 * stay; else one with memory of its own rather than a CPU; else the first. The same graph and
 * devices give the same placement.
 *
 * With a cost model the choice is made by simulating a step (white paper, 3.2.1): nodes are taken
 * in order of their longest path to an end, and each goes to the device where it would finish
 * first, considering computing time, transfers over links, and the devices' memory. Of that
 * placement, everything on one device, and round robin, the one with the shortest step is chosen.
 * If the cluster has a job `ps`, its tasks get all variables without another request, balanced by
 * bytes, and only these and nodes that share a device with them.
 */
#ifndef TF_PASS_PLACE_H
#define TF_PASS_PLACE_H

#include "exec/device/kernel.h"
#include "graph/cluster.h"
#include "pass/place/cost.h"

struct place_device {
    struct device_name name; /* full */
    const char *text;        /* canonical */
    int host;                /* index of the device whose time and memory it uses; usually itself */
    int tasks;               /* for `task:*`, `task:k%G`: the number of tasks with one; else 0 */
    double speed;            /* relative to others of its type */
    int64_t memory_bytes;    /* 0: no limit */
};

/* The available devices, in order of preference. */
struct placement {
    VEC(struct place_device) devices;
    const struct cluster *cluster; /* borrowed; NULL: none */
    struct arena arena;
};

/* Adds a device: a full name, or one of task 0 of job localhost ("CPU:0", "CUDA"). ERR_DATA if it
 * is malformed or already present. */
int placement_add(struct placement *placement, const char *device, struct error *err);

/* Adds the devices of a cluster, which must outlive the placement, and `task:*` for each device
 * that every task of a job has, for nodes that request one in each task. */
int placement_add_cluster(struct placement *placement, const struct cluster *cluster,
                          struct error *err);
/* Also adds `task:k%G` for each device that the k-th task of each group has, if the graph has such
 * replicas. ERR_CONFIG if the cluster has no whole groups; ERR_DATA if nodes disagree on them. */
int placement_add_groups(struct placement *placement, const struct graph *graph, struct error *err);
/* Devices whose memory is not stated get that which the costs state for their type. */
void placement_take_facts(struct placement *placement, const struct costs *costs);
void placement_release(struct placement *placement);

/* Inputs of the simulation. */
struct place_costs {
    const struct costs *measured; /* NULL: everything is estimated */
    int64_t assume;               /* value of an unknown dimension */
};

/* Results for one run of the whole graph, in nanoseconds; infinite for a placement that memory
 * forbids. */
struct place_result {
    double makespan;
    double one_device, round_robin; /* for comparison: everything on one device; in turn */
    int64_t n_transfers;            /* tensors that cross between devices, without control edges */
    double transfer_bytes;
};

struct place_options {
    const struct placement *placement;
    const struct kernel_table *kernels;
    const struct place_costs *model; /* NULL: the first feasible device is chosen */
    struct place_result *result;     /* with a model; may be NULL */

    /* A node that asked for a type of device without a kernel for it, or for a device that does not
     * exist, may get another one of the same task. */
    bool soft;

    /* Called for each node, by id, once all are placed; the reason is valid during the call. NULL:
     * nobody is told. */
    void (*note)(void *context, const struct node *node, const char *reason);
    /* Likewise for each node that is not on the device that it asked for. */
    void (*moved)(void *context, const struct node *node, const char *reason);
    void *context;
};

/* Sets node->assigned of all nodes. ERR_DATA naming the node, or the two that cannot share a device
 * with the shortest chain between them; the graph is then unchanged. */
int place_graph(struct graph *graph, const struct place_options *options, struct error *err);

/* Returns the variable whose value, or which itself, a node gets as its first input, if what the
 * node makes of it is no larger; else NULL. */
const struct node *place_table_of(const struct graph *graph, const struct node *node);

/* Returns, by node, whether only initial values need it, which are computed before the steps. */
bool *place_find_initial(const struct graph *graph, struct arena *arena);

/* Returns whether the node is a constant of which each device that needs it has a copy; tf-part
 * does not send these. */
#define PLACE_COPIED_BYTES_MAX ((int64_t)1 << 20)
bool place_is_copied(const struct node *node);

#endif
