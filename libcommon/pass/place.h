/* SPDX-License-Identifier: Apache-2.0
 *
 * Placement: every node gets a device that it asked for, as far as it did, together with the nodes
 * that it must share one with, where all of them have a kernel. Nodes share a device that a group
 * of their `_class` attribute names ("loc:@w"), and those that a reference to a variable joins.
 *
 * Which device of several is chosen: the one a node of the group had before, if it may stay; else
 * one with memory of its own before a CPU; else the first. The same graph and devices give the same
 * placement.
 */
#ifndef TF_PASS_PLACE_H
#define TF_PASS_PLACE_H

#include "exec/kernel.h"
#include "graph/device_name.h"

struct place_device {
    struct device_name name; /* full */
    const char *text;        /* canonical */
};

/* The devices that there are, in order of preference. */
struct placement {
    VEC(struct place_device) devices;
    struct arena arena;
};

/* Adds a device: a full name, or what task 0 of job localhost has ("CPU:0", "CUDA"). ERR_DATA when
 * it is malformed or there already. */
int placement_add(struct placement *placement, const char *device, struct error *err);
void placement_release(struct placement *placement);

struct place_options {
    const struct placement *placement;
    const struct kernel_table *kernels;

    /* Told of each node, by id, once all are placed; the reason is valid during the call. NULL:
     * nobody. */
    void (*note)(void *context, const struct node *node, const char *reason);
    void *context;
};

/* Sets node->assigned of all nodes. ERR_DATA naming the node, or the two that cannot share a device
 * and the shortest chain between them; the graph is as before then. */
int place_graph(struct graph *graph, const struct place_options *options, struct error *err);

#endif
