/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/device_point.h"

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
    struct tensor block = {.buffer = point->block}; /* which a copy of it may hold, too */
    tensor_release(&block);
    *point = (struct device_point){0};
}
