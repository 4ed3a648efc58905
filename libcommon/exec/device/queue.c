/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/device/queue.h"

#include <semaphore.h>

#include "base/container_of.h"
#include "base/memory.h"

void device_follow(struct device *device, enum queue_kind queue, struct device *other_device,
                   enum queue_kind other)
{
    struct device_event *event = other_device->queue->record(other_device, other, false);
    device->queue->wait(device, queue, event);
    other_device->queue->event_free(other_device, event);
}

void queue_follow(struct device *device, enum queue_kind queue, enum queue_kind other)
{
    if (!device->is_host)
        device_follow(device, queue, device, other);
}

/* Freed memory belongs to the compute queue again. */
static void follow_copies(struct device *device)
{
    queue_follow(device, QUEUE_COMPUTE, QUEUE_IN);
    queue_follow(device, QUEUE_COMPUTE, QUEUE_OUT);
}

static int block(struct device *device, struct device_event *event, struct error *err)
{
    int code = device->queue->block(device, event, err);
    device->queue->event_free(device, event);
    return code;
}

int device_finish(struct device *device, struct error *err)
{
    follow_copies(device);
    return device->is_host
               ? 0
               : block(device, device->queue->record(device, QUEUE_COMPUTE, false), err);
}

void device_notify_end(struct device *device, struct event_waiter *waiter)
{
    follow_copies(device);
    queue_notify_end(device, QUEUE_COMPUTE, waiter);
}

void queue_notify_end(struct device *device, enum queue_kind queue, struct event_waiter *waiter)
{
    if (device->is_host)
        waiter->done(waiter, NULL);
    else
        device->queue->notify(device, device->queue->record(device, queue, false), waiter);
}

/* ---- copies with a wait ---- */

static int copy_alone(struct device *device, enum queue_kind queue, void *to, const void *from,
                      size_t bytes, struct error *err)
{
    queue_follow(device, queue, QUEUE_COMPUTE);
    int code = device->memory->copy(device, queue, to, from, bytes, err);
    if (code || device->is_host)
        return code;
    queue_follow(device, QUEUE_COMPUTE, queue);
    return block(device, device->queue->record(device, queue, false), err);
}

int device_read(struct device *device, void *to, const void *from, size_t bytes, struct error *err)
{
    return copy_alone(device, QUEUE_OUT, to, from, bytes, err);
}

int device_write(struct device *device, void *to, const void *from, size_t bytes, struct error *err)
{
    return copy_alone(device, QUEUE_IN, to, from, bytes, err);
}

/* ---- the end ---- */

struct settler {
    struct event_waiter waiter;
    sem_t told;
};

static void settled(struct event_waiter *waiter, const struct error *failure)
{
    (void)failure;
    sem_post(&CONTAINER_OF(waiter, struct settler, waiter)->told);
}

/* Waiters of a queue are told in the order in which they asked. */
void device_settle(struct device *device)
{
    for (int i = 0; i < N_QUEUES; i++) {
        struct settler settler = {.waiter.done = settled};
        sem_init(&settler.told, 0, 0);
        queue_notify_end(device, (enum queue_kind)i, &settler.waiter);
        while (sem_wait(&settler.told))
            ;
        sem_destroy(&settler.told);
    }
}

/* ---- memory in use by a queue ---- */

struct queue_hold {
    struct event_waiter waiter;
    struct tensor tensor;
};

static void release_hold(struct event_waiter *waiter, const struct error *failure)
{
    struct queue_hold *kept = CONTAINER_OF(waiter, struct queue_hold, waiter);
    (void)failure;
    tensor_release(&kept->tensor);
    mem_free(kept);
}

void queue_keep(struct device *device, enum queue_kind queue, const struct tensor *t)
{
    if (device->is_host || !t->buffer)
        return;
    struct queue_hold *kept = mem_alloc(sizeof *kept);
    kept->waiter.done = release_hold;
    tensor_share(&kept->tensor, t);
    queue_notify_end(device, queue, &kept->waiter);
}
