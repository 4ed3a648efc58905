/* SPDX-License-Identifier: Apache-2.0
 *
 * Order among the queues of a device, and between them and the host. On a device whose memory is
 * the host's these do nothing, or only what is needed there. From any thread.
 */
#ifndef TF_EXEC_QUEUE_H
#define TF_EXEC_QUEUE_H

#include "exec/device/device.h"

/* Later work of `queue` begins after all that `other` has now. */
void queue_follow(struct device *device, enum queue_kind queue, enum queue_kind other);

/* The same for queues of two devices of the type. */
void device_follow(struct device *device, enum queue_kind queue, struct device *other_device,
                   enum queue_kind other);

/* Enqueues a copy of the tensor's elements (device_memory.copy). */
static inline int queue_copy(struct device *device, enum queue_kind queue, void *to,
                             const struct tensor *from, struct error *err)
{
    return device->memory->copy(device, queue, to, from->data, tensor_bytes(from), err);
}

/* Copies between device and host memory, after everything that was enqueued and before everything
 * that will be, and waits for the copy. */
int device_read(struct device *device, void *to, const void *from, size_t bytes, struct error *err);
int device_write(struct device *device, void *to, const void *from, size_t bytes,
                 struct error *err);

/* Waits until all enqueued work is over. */
int device_finish(struct device *device, struct error *err);

/* Has the waiter told when all enqueued work is over. */
void device_notify_end(struct device *device, struct event_waiter *waiter);

/* The same for one queue. */
void queue_notify_end(struct device *device, enum queue_kind queue, struct event_waiter *waiter);

/* Waits until no enqueued work goes on and all waiters have been told, so that memory that the
 * queues kept is dropped, also that of other devices. Of several devices, each settles before the
 * first is freed. */
void device_settle(struct device *device);

/* Holds the tensor's memory, if it is counted, until all work that the queue has now is over. */
void queue_keep(struct device *device, enum queue_kind queue, const struct tensor *t);

#endif
