/* SPDX-License-Identifier: Apache-2.0
 *
 * Placement: every node gets a device that it asked for, as far as it did, together with the nodes
 * that it must share one with, where all of them have a kernel. Nodes share a device that a group
 * of their `_class` attribute names ("loc:@w"), and those that a reference to a variable joins, or
 * the handle of a resource (a stack, say).
 *
 * Which device of several is chosen: the one a node of the group had before, if it may stay; else
 * one with memory of its own before a CPU; else the first. The same graph and devices give the same
 * placement.
 *
 * With a model of costs the choice is made by simulating a step (white paper, 3.2.1): nodes in the
 * order of their longest path to an end, each to the device where it would finish first, with the
 * time of computing, of transfers over the links, and each device's memory. Of that, of everything
 * on one device, and of all devices in turn, the placement with the shortest step is taken. Where
 * the cluster has a job `ps`, what nobody asked elsewhere for is different: variables go to its
 * tasks, balanced by bytes, and only they and what shares a device with them.
 */
#ifndef TF_PASS_PLACE_H
#define TF_PASS_PLACE_H

#include "exec/device/kernel.h"
#include "graph/cluster.h"
#include "pass/place/cost.h"

struct place_device {
    struct device_name name; /* full */
    const char *text;        /* canonical */
    int host;                /* index of the device whose time and memory it takes; mostly itself */
    int tasks;               /* of `task:*`, `task:k%G`: in how many there is one; else 0 */
    double speed;            /* compared with others of its type */
    int64_t memory_bytes;    /* 0: no limit */
};

/* The devices that there are, in order of preference. */
struct placement {
    VEC(struct place_device) devices;
    const struct cluster *cluster; /* borrowed; NULL: none */
    struct arena arena;
};

/* Adds a device: a full name, or what task 0 of job localhost has ("CPU:0", "CUDA"). ERR_DATA when
 * it is malformed or there already. */
int placement_add(struct placement *placement, const char *device, struct error *err);

/* Adds the devices of a cluster, which must outlive the placement, and for each that every task of
 * a job has one `task:*`, for the nodes that ask for one in each. */
int placement_add_cluster(struct placement *placement, const struct cluster *cluster,
                          struct error *err);
/* And for each that a certain task of each group has `task:k%G`, where the graph has such replicas.
 * ERR_CONFIG when the cluster has no whole groups; ERR_DATA when nodes differ about them. */
int placement_add_groups(struct placement *placement, const struct graph *graph, struct error *err);
/* Devices whose memory nobody has said have what the costs say of their type. */
void placement_take_facts(struct placement *placement, const struct costs *costs);
void placement_release(struct placement *placement);

/* The facts that the simulation goes by. */
struct place_costs {
    const struct costs *measured; /* NULL: all is estimated */
    int64_t assume;               /* what an unknown dimension counts as */
};

/* What it found, of one pass over the whole graph; nanoseconds. Those of a placement that memory
 * forbids are infinite. */
struct place_result {
    double makespan;
    double one_device, round_robin; /* of the trivial placements, for comparison */
    int64_t n_transfers;            /* tensors that cross between devices; control edges not */
    double transfer_bytes;
};

struct place_options {
    const struct placement *placement;
    const struct kernel_table *kernels;
    const struct place_costs *model; /* NULL: the first device that will do */
    struct place_result *result;     /* with a model; NULL: not wanted */

    /* A node that asked for a type of device which has no kernel for it, or for one that there is
     * not, may have another of the same task. */
    bool soft;

    /* Told of each node, by id, once all are placed; the reason is valid during the call. NULL:
     * nobody. */
    void (*note)(void *context, const struct node *node, const char *reason);
    /* The same of each that is elsewhere than it asked for. */
    void (*moved)(void *context, const struct node *node, const char *reason);
    void *context;
};

/* Sets node->assigned of all nodes. ERR_DATA naming the node, or the two that cannot share a device
 * and the shortest chain between them; the graph is as before then. */
int place_graph(struct graph *graph, const struct place_options *options, struct error *err);

/* Simulates a graph whose nodes all are assigned, under options->model. ERR_DATA when one is
 * assigned to no device that there is; makespan is infinite when memory does not suffice. */
int place_estimate(const struct graph *graph, const struct place_options *options,
                   struct place_result *result, struct error *err);

/* Whether the node is a constant that each device which needs it has for itself: tf-part sends
 * none. */
#define PLACE_COPIED_BYTES_MAX ((int64_t)1 << 20)
bool place_is_copied(const struct node *node);

#endif
