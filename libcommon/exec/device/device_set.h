/* SPDX-License-Identifier: Apache-2.0
 *
 * The open devices of one task that a graph is placed on.
 */
#ifndef TF_EXEC_DEVICE_SET_H
#define TF_EXEC_DEVICE_SET_H

#include "exec/device/device.h"

struct device_set {
    VEC(struct device *) devices;
};

/* Opens the devices that a graph runs on: each that a node of a graph that was cut is assigned to;
 * else the one that all nodes are assigned to, or the CPU. They share `options->threads` (0:
 * cores). ERR_CONFIG if a node has no device, or if the devices belong to several tasks, which run
 * in separate processes. */
int device_set_open(struct device_set *set, const struct graph *graph, bool is_cut,
                    const struct device_options *options, struct error *err);
/* Calls device_settle for all devices. */
void device_set_settle(struct device_set *set);
void device_set_release(struct device_set *set);

/* Returns the index of the node's device among n; ERR_CONFIG and -1 if it is none of them. */
int device_find(struct device *const *devices, int n, const struct node *node, struct error *err);

#endif
