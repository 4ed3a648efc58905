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

struct placer {
    const struct graph *graph;
    const struct placement *placement;
    const struct kernel_table *kernels;
    struct arena arena;
    const char *types[PLACE_TYPES_MAX]; /* of the available devices */
    int n_types;
    struct device_name *asked;  /* by node */
    struct device_name *wanted; /* by node: the part of the request that must hold */
    bool soft;                  /* requests may be relaxed */
    uint32_t *kernel_types;     /* by node: bit i: has a kernel on types[i] */
    int *parent;                /* union-find, by node */
    int *members;               /* by root: nodes of its group */
    struct device_name *merged;
    uint32_t *common_types;       /* by root: types for which all have a kernel */
    int *chosen;                  /* by root: index of a device */
    char *settled;                /* by root: the choice is final */
    struct place_model *model;    /* NULL: no simulation */
    VEC(struct place_link) links; /* reasons for two nodes to share a device */
    struct error *err;
};

int place_root(struct placer *p, int node);

/* Returns whether the device is possible for the group, by kernels and by name. */
bool place_is_feasible(const struct placer *p, int root, const struct place_device *device);

static inline int place_type_of(const struct placer *p, const struct place_device *device)
{
    int i = 0;
    while (__builtin_strcmp(p->types[i], device->name.type))
        i++;
    return i;
}

/* Chooses the device of each group that is not settled, by simulation. ERR_DATA if memory does not
 * suffice. */
int place_search(struct placer *p, const struct place_costs *costs, struct place_result *result);

/* ---- the simulation of a step on the devices of a placement ----
 *
 * The model has all data that are independent of the placement: times of nodes on each type of
 * device, bytes of their outputs, the order of placing. A run places the nodes one by one and
 * advances the time. Units are nanoseconds and bytes.
 *
 * A device computes one node at a time, and uses its idle gaps. A tensor is sent to a device once,
 * however many nodes need it there; between two tasks tensors are sent one after the other in each
 * direction, and likewise through the adapter of a host with known bandwidth. A device that stands
 * for one per task of a job sends and receives once per task. Within loops everything counts
 * LOOP_STEPS times per level, except measured times, which are for a whole step. */

struct place_model {
    struct placer *placer;
    int n, n_devices, n_channels;
    int *order;                   /* nodes by longest path to an end, longest first */
    const struct costs *measured; /* NULL: none */
    double *ns;                   /* by node * n_devices + device, for speed 1 */
    double *weight;               /* by node: number of runs per step */
    int *first_output;            /* by node: index into bytes */
    double *bytes;                /* by output */
    double *made;                 /* by node: memory allocated by a run */
    double *held;                 /* by node: bytes kept: variables, constants */
    bool *initial;                /* by node: only initial values need it */
    int *n_uses;                  /* by node: number of outgoing data edges */
    struct place_wire *wires;     /* by from * n_devices + to */
    int64_t assume;

    char *has_variable; /* by root */
    char *may;          /* by root * n_devices + device: it may be there */
    double *kept;       /* by root: bytes kept by all of the group */

    /* The chosen placement: */
    char *by_bytes; /* by root: variables balanced over shards */
    double by_bytes_total;
    double *best_start, *best_finish; /* by node */
};

#endif
