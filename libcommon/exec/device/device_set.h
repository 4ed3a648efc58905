/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices of one task that a graph is placed on, opened.
 */
#ifndef TF_EXEC_DEVICE_SET_H
#define TF_EXEC_DEVICE_SET_H

#include "exec/device/device.h"

struct device_set {
    VEC(struct device *) devices;
};

/* Opens each device that a node is assigned to. `options->threads` (0: cores) are shared among
 * them. ERR_CONFIG when a node has no device, or when they belong to several tasks: those run in
 * processes of their own. */
int device_set_open(struct device_set *set, const struct graph *graph,
                    const struct device_options *options, struct error *err);

/* The devices that a graph runs on: of a graph that was cut all of them, of any other the one that
 * all of its nodes are assigned to, or else the CPU. */
int device_set_open_for(struct device_set *set, const struct graph *graph, bool is_cut,
                        const struct device_options *options, struct error *err);
/* Waits as device_settle does, for all of them. */
void device_set_settle(struct device_set *set);
void device_set_release(struct device_set *set);

/* Returns which of n devices a node is assigned to. ERR_CONFIG and -1 when it is none of them. */
int device_find(struct device *const *devices, int n, const struct node *node, struct error *err);

#endif
