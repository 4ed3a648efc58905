/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices of one task that a graph is placed on, opened.
 */
#ifndef TF_EXEC_DEVICE_SET_H
#define TF_EXEC_DEVICE_SET_H

#include "exec/device.h"

struct device_set {
    VEC(struct device *) devices;
};

/* Opens each device that a node is assigned to. `options->threads` (0: cores) are shared among
 * them. ERR_CONFIG when a node has no device, or when they belong to several tasks: those run in
 * processes of their own. */
int device_set_open(struct device_set *set, const struct graph *graph,
                    const struct device_options *options, struct error *err);
void device_set_release(struct device_set *set);

#endif
