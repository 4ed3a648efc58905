/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the placer share. A group is the set of nodes that must share a device; its
 * data lie under its root, the node with the smallest id.
 */
#ifndef TF_PASS_PLACE_PRIVATE_H
#define TF_PASS_PLACE_PRIVATE_H

#include "pass/place/place_model.h"

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

/* place_join.c: on a cluster, puts near a variable what would otherwise travel for it. */
int place_join_near(struct placer *p);

/* By node: only initial values need it. */
bool *place_find_initial(const struct graph *graph, struct arena *arena);

/* By kernels and by name. */
bool place_is_feasible(const struct placer *p, int root, const struct place_device *device);

static inline int place_type_of(const struct placer *p, const struct place_device *device)
{
    int i = 0;
    while (__builtin_strcmp(p->types[i], device->name.type))
        i++;
    return i;
}

/* place_soft.c: sets what the node wants; gives up the group's type of device, if that is allowed
 * and it has one; and whether the node is elsewhere than it asked for, with the reason. */
void place_soften_node(struct placer *p, int node);
bool place_soften_group(struct placer *p, int root);
bool place_why_soft(const struct placer *p, const struct node *node, char reason[static 512]);

/* Each explains one way to fail, and returns ERR_DATA. */
int place_fail_shared(struct placer *p, int node);  /* asked for other devices than its group */
int place_fail_kernels(struct placer *p, int node); /* no type of device has kernels for all */
int place_fail_group(struct placer *p, int root);   /* no device is left for the group */

/* Chooses the device of each group that is not settled, by simulation. ERR_DATA when memory does
 * not suffice. */
int place_search(struct placer *p, const struct place_costs *costs, struct place_result *result);

/* Simulates what is chosen. */
int place_measure(struct placer *p, const struct place_costs *costs, struct place_result *result);

#endif
