/* SPDX-License-Identifier: Apache-2.0
 *
 * A point of a device's work, after which values that are on their way from one plan to another are
 * there; and how they get to the host's memory.
 */
#ifndef TF_EXEC_DEVICE_POINT_H
#define TF_EXEC_DEVICE_POINT_H

#include "exec/device/pool.h"

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

/* Values of a device on their way to the host's memory, for who cannot take them where they are.
 * The error flag of the kernels comes with them, so that nobody gets garbage. */

/* Lives with its owner until `done` is called, once, by a thread of the device's: with the reason
 * if the device has failed, or ERR_DATA in the name of the node whose kernel has left a fault. */
struct copy_out {
    struct event_waiter waiter; /* its own */
    struct device_point at;     /* of `from` */
    struct tensor *from, *to;   /* n, the owner's arrays; to: the copies */
    int n;
    struct buffer *fault; /* its own, in host memory */
    void (*done)(struct copy_out *copy, const struct error *failure);
};

/* Enqueues the copies, to memory from a pool of the host's. The values stay until `done`, which is
 * called after copy_out_notify; not if this fails. Then it may be enqueued once more. */
int copy_out_enqueue(struct copy_out *copy, struct pool *pool, struct error *err);
void copy_out_notify(struct copy_out *copy);

/* When all is over, or copy_out_enqueue has failed: lets go of the values, their copies (unless
 * they were taken) and the point. */
void copy_out_release(struct copy_out *copy);

#endif
