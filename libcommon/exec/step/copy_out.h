/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of a device on their way to the host's memory, for who cannot take them where they are.
 * What kernels had left in the fault word comes with them, so that nobody gets garbage.
 */
#ifndef TF_EXEC_COPY_OUT_H
#define TF_EXEC_COPY_OUT_H

#include "exec/device/pool.h"
#include "exec/step/device_point.h"

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

/* Enqueues the copies, to memory from a pool of the host's. What it is given stays until `done`,
 * which is called after copy_out_notify; not if this fails. */
int copy_out_enqueue(struct copy_out *copy, struct pool *pool, struct error *err);
void copy_out_notify(struct copy_out *copy);

/* When all is over, or copy_out_enqueue has failed: lets go of the values, their copies (unless
 * they were taken) and the point. */
void copy_out_release(struct copy_out *copy);

#endif
