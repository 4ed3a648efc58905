/* SPDX-License-Identifier: Apache-2.0
 *
 * A point of a device's work, after which values that go from one plan to another are computed; and
 * how such values get to host memory.
 */
#ifndef TF_EXEC_DEVICE_POINT_H
#define TF_EXEC_DEVICE_POINT_H

#include "exec/device/pool.h"

/* The place of values. Values in a device's memory may not be computed yet: the receiver makes a
 * queue wait for that, and passes on the error flag that the sender's kernels had set by then, as
 * what is computed from garbage is garbage. */
struct device_point {
    struct device *device;      /* whose memory it is; NULL: the host's, and no more is set */
    struct device_event *ready; /* after which the device may read them, and `block` */
    struct buffer *block;       /* in its memory: a struct step_block with only the fault set */
};

/* The fault of the point's block, in the device's memory. */
static inline struct fault *device_point_fault(const struct device_point *point)
{
    return &((struct step_block *)point->block->data)->fault;
}

/* Makes the compute queue wait for the point, and enqueues a copy of its fault to the block, unless
 * the block has one. */
int device_point_join(const struct device_point *point, struct step_block *block,
                      struct error *err);

/* Leaves it empty. */
void device_point_release(struct device_point *point);

/* Copies of a device's values to host memory, for receivers that cannot take them in place. The
 * error flag of the kernels is copied, too, so that nobody gets garbage. */

/* Kept by its owner until a thread of the device calls `done`, once: with the reason if the device
 * has failed, or ERR_DATA naming the node whose kernel has set the error flag. */
struct copy_out {
    struct event_waiter waiter; /* private */
    struct device_point at;     /* of `from` */
    struct tensor *from, *to;   /* n, the owner's arrays; to: the copies */
    int n;
    struct buffer *fault; /* private, in host memory */
    void (*done)(struct copy_out *copy, const struct error *failure);
};

/* Enqueues the copies, to memory from a pool of the host's. The values stay until `done`, which is
 * called after copy_out_notify; not if this fails. It may then be called a second time. */
int copy_out_enqueue(struct copy_out *copy, struct pool *pool, struct error *err);
void copy_out_notify(struct copy_out *copy);

/* When all is over, or copy_out_enqueue has failed: drops the values, their copies (unless these
 * were taken) and the point. */
void copy_out_release(struct copy_out *copy);

#endif
