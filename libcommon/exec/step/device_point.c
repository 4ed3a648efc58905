/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/device_point.h"

#include "base/container_of.h"
#include "base/memory.h"
#include "exec/device/fault.h"
#include "exec/device/queue.h"

int device_point_join(const struct device_point *point, struct step_block *block, struct error *err)
{
    struct device *device = point->device;
    device->queue->wait(device, QUEUE_COMPUTE, point->ready);
    return device->leave_fault(device, block, device_point_fault(point), err);
}

void device_point_release(struct device_point *point)
{
    if (point->ready)
        point->device->queue->event_free(point->device, point->ready);
    struct tensor block = {.buffer = point->block}; /* a copy of the point may hold it, too */
    tensor_release(&block);
    *point = (struct device_point){0};
}

/* ---- to the host ---- */

int copy_out_enqueue(struct copy_out *copy, struct pool *pool, struct error *err)
{
    struct device *device = copy->at.device;
    struct buffer *buffer = copy->fault;
    if (!buffer) /* else this is the second attempt */
        buffer = copy->fault = pool_alloc(pool, sizeof(struct fault));
    /* Allocates all memory before the first copy, which could not be undone. */
    for (int i = 0; buffer && i < copy->n; i++) {
        if (!(buffer = pool_alloc(pool, tensor_bytes(&copy->from[i]))))
            break;
        copy->to[i] = copy->from[i];
        copy->to[i].buffer = buffer;
        copy->to[i].data = buffer->data;
    }
    if (!buffer)
        return error_set(err, ERR_OS, "no memory for a value that leaves its device%s",
                         mem_limit_text());
    device->queue->wait(device, QUEUE_OUT, copy->at.ready);
    int code = device->memory->copy(device, QUEUE_OUT, copy->fault->data,
                                    device_point_fault(&copy->at), sizeof(struct fault), err);
    for (int i = 0; !code && i < copy->n; i++)
        code = queue_copy(device, QUEUE_OUT, copy->to[i].data, &copy->from[i], err);
    return code;
}

static void copied(struct event_waiter *waiter, const struct error *failure)
{
    struct copy_out *copy = CONTAINER_OF(waiter, struct copy_out, waiter);
    const struct fault *fault = copy->fault->data;
    struct error found = ERROR_INIT;
    if (!failure && fault->code)
        fault_report(fault, &found);
    copy->done(copy, found.code ? &found : failure);
}

void copy_out_notify(struct copy_out *copy)
{
    copy->waiter.done = copied;
    queue_notify_end(copy->at.device, QUEUE_OUT, &copy->waiter);
}

void copy_out_release(struct copy_out *copy)
{
    for (int i = 0; i < copy->n; i++) {
        tensor_release(&copy->from[i]);
        tensor_release(&copy->to[i]);
    }
    if (copy->fault)
        copy->fault->free(copy->fault);
    copy->fault = NULL;
    device_point_release(&copy->at);
}
