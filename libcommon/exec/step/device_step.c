/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/device_step.h"

#include "base/memory.h"
#include "exec/device/queue.h"
#include "exec/step/trace.h"

int device_step_open(struct device_step *on_device, struct device *device, struct error *err)
{
    if (device->is_host || on_device->memory)
        return 0;
    on_device->device = device;
    on_device->host = device_alloc_host(device, 2 * sizeof(struct step_block));
    if (on_device->host)
        on_device->memory = device_alloc(device, sizeof(struct step_block));
    if (on_device->memory) {
        pthread_mutex_init(&on_device->lock, NULL);
        return 0;
    }
    device_step_release(on_device);
    return error_set(err, ERR_OS, "no memory for a step on %s:%d%s", device->type, device->index,
                     mem_limit_text());
}

static void forget_copies(struct device_step *on_device)
{
    if (on_device->copied)
        on_device->device->queue->event_free(on_device->device, on_device->copied);
    on_device->copied = NULL;
}

void device_step_release(struct device_step *on_device)
{
    if (on_device->host)
        on_device->host->free(on_device->host);
    if (on_device->memory) {
        forget_copies(on_device);
        pthread_mutex_destroy(&on_device->lock);
        on_device->memory->free(on_device->memory);
    }
    on_device->host = on_device->memory = NULL;
}

static struct step_block *written(const struct device_step *on_device)
{
    return on_device->host->data;
}

static struct step_block *read_back(const struct device_step *on_device)
{
    return written(on_device) + 1;
}

static void tell_trace(const struct device *device, const struct step *step)
{
    struct trace_device told = {device->type, device->index, device->memory_bytes};
    if (step->trace)
        trace_device(step->trace, &told);
}

int device_step_begin(struct device_step *on_device, const struct step *step, struct error *err)
{
    struct device *device = on_device->device;
    if (!on_device->memory)
        return 0;
    tell_trace(device, step);
    forget_copies(on_device);
    *written(on_device) =
        (struct step_block){.number = step->number, .seed = step->seed, .replica = step->replica};
    queue_follow(device, QUEUE_IN, QUEUE_COMPUTE);
    int code = device->memory->copy_in(device, on_device->memory->data, written(on_device),
                                       sizeof(struct step_block), err);
    queue_follow(device, QUEUE_COMPUTE, QUEUE_IN);
    return code;
}

void device_step_copied(struct device_step *on_device)
{
    struct device *device = on_device->device;
    pthread_mutex_lock(&on_device->lock);
    forget_copies(on_device);
    on_device->copied = device->queue->record(device, QUEUE_IN, false);
    pthread_mutex_unlock(&on_device->lock);
}

void device_step_await_copies(struct device_step *on_device)
{
    struct device *device = on_device->device;
    pthread_mutex_lock(&on_device->lock);
    if (on_device->copied)
        device->queue->wait(device, QUEUE_COMPUTE, on_device->copied);
    pthread_mutex_unlock(&on_device->lock);
}

/* A device that has failed says so to whoever waits for it. */
void device_step_end(struct device_step *on_device)
{
    struct device *device = on_device->device;
    struct error ignored = ERROR_INIT;
    if (!on_device->memory)
        return;
    queue_follow(device, QUEUE_OUT, QUEUE_COMPUTE);
    device->memory->copy_out(device, read_back(on_device), on_device->memory->data,
                             sizeof(struct step_block), &ignored);
}

const struct fault *device_step_fault(const struct device_step *on_device)
{
    const struct fault *fault = on_device->memory ? &read_back(on_device)->fault : NULL;
    return fault && fault->code ? fault : NULL;
}
