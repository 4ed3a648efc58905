/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/device_step.h"

#include "base/memory.h"
#include "exec/device/queue.h"
#include "exec/step/trace.h"

static int make_block(struct device_step *on_device, struct device *device, struct error *err)
{
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

/* The block as written, then as read back. */
static struct step_block *host_blocks(const struct device_step *on_device)
{
    return on_device->host->data;
}

int device_step_begin(struct device_step *on_device, struct device *device, const struct step *step,
                      struct error *err)
{
    if (device->is_host)
        return 0;
    if (!on_device->memory && make_block(on_device, device, err))
        return err->code;
    const struct trace_device told = {device->type, device->index, device->memory_bytes};
    if (step->trace)
        trace_device(step->trace, &told);
    forget_copies(on_device);
    host_blocks(on_device)[0] =
        (struct step_block){.number = step->number, .seed = step->seed, .replica = step->replica};
    queue_follow(device, QUEUE_IN, QUEUE_COMPUTE);
    int code = device->memory->copy(device, QUEUE_IN, on_device->memory->data,
                                    host_blocks(on_device), sizeof(struct step_block), err);
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

/* A device that has failed reports that to those who wait for it. */
void device_step_end(struct device_step *on_device)
{
    struct device *device = on_device->device;
    struct error ignored = ERROR_INIT;
    if (!on_device->memory)
        return;
    queue_follow(device, QUEUE_OUT, QUEUE_COMPUTE);
    device->memory->copy(device, QUEUE_OUT, host_blocks(on_device) + 1, on_device->memory->data,
                         sizeof(struct step_block), &ignored);
}

const struct fault *device_step_fault(const struct device_step *on_device)
{
    const struct fault *fault = on_device->memory ? &host_blocks(on_device)[1].fault : NULL;
    return fault && fault->code ? fault : NULL;
}

/* ---- times of enqueued work ---- */

/* The events are kept until the step is over. */
struct device_timer {
    struct device *device;
    enum queue_kind queue;
    struct device_event *begin, *end;
    struct trace_run run;
    struct device_timer *next;
};

struct device_timer *device_timer_begin(struct device *device, enum queue_kind queue)
{
    struct device_timer *timing = mem_alloc(sizeof *timing);
    timing->device = device;
    timing->queue = queue;
    timing->begin = device->queue->record(device, queue, true);
    return timing;
}

void device_timer_stop(struct device_timer *timing)
{
    timing->end = timing->device->queue->record(timing->device, timing->queue, true);
}

void device_timer_end(struct device_timer *timing, struct device_step *on_device,
                      const struct trace_run *run)
{
    timing->run = *run;
    if (!timing->end)
        device_timer_stop(timing);
    timing->next = atomic_load(&on_device->timings);
    while (!atomic_compare_exchange_weak(&on_device->timings, &timing->next, timing))
        ;
}

void device_timer_drop(struct device_timer *timing)
{
    if (!timing)
        return;
    timing->device->queue->event_free(timing->device, timing->begin);
    if (timing->end)
        timing->device->queue->event_free(timing->device, timing->end);
    mem_free(timing);
}

void device_step_tell(struct device_step *on_device, const struct step *step, bool has_failed)
{
    static const char *const names[] = {
        [QUEUE_COMPUTE] = "compute", [QUEUE_IN] = "in", [QUEUE_OUT] = "out"};
    struct device_timer *first = NULL, *next;
    if (!atomic_load_explicit(&on_device->timings, memory_order_acquire))
        return;
    for (struct device_timer *last = atomic_exchange(&on_device->timings, NULL); last;
         last = next) { /* in the order in which they ended */
        next = last->next;
        last->next = first;
        first = last;
    }
    for (struct device_timer *timing = first; timing; timing = next) {
        const struct device_queue *queue = timing->device->queue;
        next = timing->next;
        if (!has_failed) {
            timing->run.queue = names[timing->queue];
            timing->run.start = queue->time(timing->device, timing->begin);
            timing->run.end = queue->time(timing->device, timing->end);
            trace_kernel(step->trace, step->number, &timing->run);
        }
        device_timer_drop(timing);
    }
}
