/* SPDX-License-Identifier: Apache-2.0
 *
 * Order among the queues of a device, and between them and the host. All do nothing, or no more
 * than what is plain, on a device whose memory is the host's. From any thread.
 */
#ifndef TF_EXEC_QUEUE_H
#define TF_EXEC_QUEUE_H

#include "exec/device/device.h"

/* Work that `queue` gets from now on begins after all that `other` has by now. */
void queue_follow(struct device *device, enum queue_kind queue, enum queue_kind other);

/* The same where the other queue is of another device of the type. */
void device_follow(struct device *device, enum queue_kind queue, struct device *other_device,
                   enum queue_kind other);

/* Copies between memory of the device and the host's, behind all that was enqueued and before all
 * that will be, and waits until they are over. */
int device_read(struct device *device, void *to, const void *from, size_t bytes, struct error *err);
int device_write(struct device *device, void *to, const void *from, size_t bytes,
                 struct error *err);

/* Waits until all that was enqueued is over. */
int device_finish(struct device *device, struct error *err);

/* Has the waiter told when all that was enqueued is over. */
void device_notify_end(struct device *device, struct event_waiter *waiter);

/* The same of one queue. */
void queue_notify_end(struct device *device, enum queue_kind queue, struct event_waiter *waiter);

/* Waits until nothing that was enqueued goes on, and all who wanted to hear of it have: what the
 * device's queues kept is let go, of other devices' memory, too. If there are several devices, each
 * settles before the first one is freed. */
void device_settle(struct device *device);

/* Shares the tensor's memory, if it is counted, until all that the queue has by now is over. */
void queue_keep(struct device *device, enum queue_kind queue, const struct tensor *t);

#endif
