/* SPDX-License-Identifier: Apache-2.0
 *
 * A point of a device's work, after which values that are on their way from one plan to another are
 * there.
 */
#ifndef TF_EXEC_DEVICE_POINT_H
#define TF_EXEC_DEVICE_POINT_H

#include "exec/device/device.h"

/* Where values are. In a device's memory they may not be computed yet: whoever gets them has a
 * queue wait for that, and for what kernels had left in the step block of whose they are by then,
 * as what is computed of garbage is garbage. */
struct device_point {
    struct device *device;      /* whose memory they are in; NULL: the host's, and no more is set */
    struct device_event *ready; /* after which the device may read them, and `block` */
    struct buffer *block;       /* in its memory, a struct step_block of which the fault is set */
};

/* The fault of its block, in the device's memory. */
static inline struct fault *device_point_fault(const struct device_point *point)
{
    return &((struct step_block *)point->block->data)->fault;
}

/* Enqueues that the compute queue waits for the point, and that a fault that was left by then is
 * left in the block, too, unless that has one. */
int device_point_join(const struct device_point *point, struct step_block *block,
                      struct error *err);

/* Leaves it empty. */
void device_point_release(struct device_point *point);

#endif
