/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the parts of the placer. A group is a set of nodes that must share a device; its data
 * are stored under its root, the node with the smallest id.
 */
#ifndef TF_PASS_PLACE_PRIVATE_H
#define TF_PASS_PLACE_PRIVATE_H

#include "pass/place/place.h"

#define PLACE_TYPES_MAX 32

/* Two nodes. */
struct place_link {
    int a, b;
};

/* A node. What is said of a group is its root's. */
struct place_node {
    struct device_name asked, wanted; /* its request; the part of it that must hold */
    uint32_t kernel_types;            /* bit i: has a kernel on types[i] */
    int parent;                       /* union-find */

    /* Of a group: */
    int members;
    struct device_name merged; /* of what they want */
    uint32_t common_types;     /* for which all have a kernel */
    int chosen;                /* index of a device */
    bool settled;              /* the choice is final */
    bool has_variable;
    bool by_bytes; /* its variables are balanced over shards */
    double kept;   /* bytes kept by all of it */
    /* the smallest one in it: which node is the root depends on the graph's order */
    const char *name;
    bool *may; /* by device: it may be there */

    /* For the simulation: */
    double made;      /* memory allocated by a run */
    double held;      /* bytes kept: variables, constants */
    int first_output; /* index into bytes */
    int n_uses;       /* number of outgoing data edges */
};

/* A node in a run of the simulation. */
struct place_spot {
    int device;    /* -1: not placed yet */
    int group;     /* of a root: the group's device; -1: none yet */
    int uses_left; /* users that are not placed */
    int copy;      /* the last tensor of it that was sent: index into copies; -1: none */
    double start, finish;
};

/* The simulation of a step on the devices of a placement has data that are independent of the
 * placement: times of nodes on each type of device, bytes of their outputs, the order of placing. A
 * run places the nodes one by one and advances the time. Units are nanoseconds and bytes.
 *
 * A device computes one node at a time, and uses its idle gaps. A tensor is sent to a device once,
 * however many nodes need it there; between two tasks tensors are sent one after the other in each
 * direction, and likewise through the adapter of a host with known bandwidth. A device that stands
 * for one per task of a job sends and receives once per task. Within loops everything counts
 * LOOP_STEPS times per level, except measured times, which are for a whole step. */
struct placer {
    const struct graph *graph;
    const struct placement *placement;
    const struct kernel_table *kernels;
    struct arena arena;
    int n, n_devices;
    const char *types[PLACE_TYPES_MAX]; /* of the available devices */
    int n_types;
    int *type_of; /* by device: index into types */
    bool soft;    /* requests may be relaxed */
    struct place_node *nodes;
    const bool *initial;          /* by node: only initial values need it */
    VEC(struct place_link) links; /* reasons for two nodes to share a device */
    struct error *err;

    /* The simulation: */
    const struct place_costs *costs;
    int n_channels;
    int *order;               /* nodes by longest path to an end, longest first */
    double *weight;           /* by node: number of runs per step */
    double *ns;               /* by node * n_devices + device, for speed 1 */
    double *bytes;            /* by output */
    struct place_wire *wires; /* by from * n_devices + to */
    double by_bytes_total;    /* of the variables that are balanced over shards */
    struct place_spot *best;  /* the chosen run, by node; NULL: no simulation */
};

int place_root(struct placer *p, int node);

static inline struct place_node *place_group(struct placer *p, int node)
{
    return &p->nodes[place_root(p, node)];
}

static inline const struct place_device *place_device(const struct placer *p, int device)
{
    return &p->placement->devices.items[device];
}

/* Chooses the device of each group that is not settled, by simulation. ERR_DATA if memory does not
 * suffice. */
int place_search(struct placer *p, const struct place_costs *costs, struct place_result *result);

#endif
