/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the placer share. A group is the set of nodes that must share a device; its
 * data lie under its root, the node with the smallest id.
 */
#ifndef TF_PASS_PLACE_PRIVATE_H
#define TF_PASS_PLACE_PRIVATE_H

#include "pass/place/place.h"

#define PLACE_TYPES_MAX 32

struct place_link {
    int a, b; /* nodes that must share a device for a reason of their own */
};

struct placer {
    const struct graph *graph;
    const struct placement *placement;
    const struct kernel_table *kernels;
    struct arena arena;
    const char *types[PLACE_TYPES_MAX]; /* of the devices there are */
    int n_types;
    struct device_name *asked;  /* by node */
    struct device_name *wanted; /* by node: what of it has to hold */
    bool soft;                  /* requests may give way */
    uint32_t *kernel_types;     /* by node: bit i: has a kernel on types[i] */
    int *parent;                /* union-find, by node */
    int *members;               /* by root: nodes of its group */
    struct device_name *merged;
    uint32_t *common_types;    /* by root: where all have a kernel */
    int *chosen;               /* by root: index of a device */
    char *settled;             /* by root: chosen for good */
    struct place_model *model; /* NULL: nothing is simulated */
    VEC(struct place_link) links;
    struct error *err;
};

int place_root(struct placer *p, int node);

/* They must share a device. */
void place_join(struct placer *p, int a, int b);

/* For each node, whether only initial values need it. */
bool *place_find_initial(const struct graph *graph, struct arena *arena);

/* Returns whether the device is possible, by kernels and by name. */
bool place_is_feasible(const struct placer *p, int root, const struct place_device *device);

static inline int place_type_of(const struct placer *p, const struct place_device *device)
{
    int i = 0;
    while (__builtin_strcmp(p->types[i], device->name.type))
        i++;
    return i;
}

/* Each explains one way to fail, and returns ERR_DATA. */
int place_fail_shared(struct placer *p, int node);  /* asked for other devices than its group */
int place_fail_kernels(struct placer *p, int node); /* no type of device has kernels for all */
int place_fail_group(struct placer *p, int root);   /* no device is left for the group */

/* Chooses the device of each group that is not settled, by simulation. ERR_DATA when memory does
 * not suffice. */
int place_search(struct placer *p, const struct place_costs *costs, struct place_result *result);

/* Simulates what is chosen. */
int place_measure(struct placer *p, const struct place_costs *costs, struct place_result *result);

/* ---- the simulation of a step on the devices of a placement ----
 *
 * The model holds what does not depend on where nodes are: their time on each type of device, the
 * bytes of their outputs, the order in which they are placed. A run places them one by one and
 * keeps the time.
 *
 * A device computes one node at a time and fills gaps that it waited in. A tensor crosses to a
 * device once, however many nodes want it there; between two tasks one tensor is on its way after
 * another in each direction, and so it is through the adapter of a host whose bandwidth is known.
 * What stands for one device in each task of a job sends and gets as often as there are tasks.
 * Inside loops everything counts LOOP_STEPS times a level, but for times that were measured, which
 * are those of a whole step. Nanoseconds and bytes. */

/* A channel that transfers share, one after the other. */
struct place_channel {
    int index;       /* of the run's; -1: none */
    double per_byte; /* the time that it takes, of a tensor to all who get it this way */
};

#define PLACE_CHANNELS 3 /* the link, the adapter of the sender's host, that of the receiver's */

/* A wire from one device to another. */
struct place_wire {
    double latency, per_byte; /* until a tensor is with all who get it */
    struct place_channel channels[PLACE_CHANNELS];
};

struct place_model {
    struct placer *placer;
    int n, n_devices, n_channels;
    int *order;                   /* of nodes: longest path to an end first */
    const struct costs *measured; /* NULL: nothing was */
    double *ns;                   /* by node * n_devices + device, were its speed 1 */
    double *weight;               /* by node: how often its outputs are made in a step */
    int *first_output;            /* by node: index into bytes */
    double *bytes;                /* by output */
    double *made;                 /* by node: bytes of memory that a run of it takes */
    double *held;                 /* by node: bytes that stay: variables, constants */
    bool *initial;                /* by node: only initial values need it */
    int *n_uses;                  /* by node: edges of data from it */
    struct place_wire *wires;     /* by from * n_devices + to */
    int64_t assume;

    /* Facts of the placement that was chosen. */
    char *by_bytes; /* by root: variables that were balanced over shards */
    double by_bytes_total;
    double *best_start, *best_finish; /* by node */
    struct arena arena;
};

int place_model_new(struct placer *p, const struct place_costs *costs, struct place_model **model);
void place_model_free(struct place_model *model);

#endif
