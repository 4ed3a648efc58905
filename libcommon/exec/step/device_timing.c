/* SPDX-License-Identifier: Apache-2.0
 *
 * When a device did what a step has enqueued. Its events are kept until the step is over.
 */
#include "base/memory.h"
#include "exec/step/device_step.h"
#include "exec/step/trace.h"

struct device_timing {
    struct device *device;
    enum queue_kind queue;
    struct device_event *begin, *end;
    struct trace_run run;
    struct device_timing *next;
};

struct device_timing *device_timing_begin(struct device *device, enum queue_kind queue)
{
    struct device_timing *timing = mem_alloc(sizeof *timing);
    timing->device = device;
    timing->queue = queue;
    timing->begin = device->queue->record(device, queue, true);
    return timing;
}

void device_timing_stop(struct device_timing *timing)
{
    timing->end = timing->device->queue->record(timing->device, timing->queue, true);
}

void device_timing_end(struct device_timing *timing, struct device_step *on_device,
                       const struct trace_run *run)
{
    timing->run = *run;
    if (!timing->end)
        device_timing_stop(timing);
    timing->next = atomic_load(&on_device->timings);
    while (!atomic_compare_exchange_weak(&on_device->timings, &timing->next, timing))
        ;
}

void device_timing_drop(struct device_timing *timing)
{
    if (!timing)
        return;
    timing->device->queue->event_free(timing->device, timing->begin);
    if (timing->end)
        timing->device->queue->event_free(timing->device, timing->end);
    mem_free(timing);
}

static void tell(struct device_timing *timing, const struct step *step)
{
    static const char *const names[] = {
        [QUEUE_COMPUTE] = "compute", [QUEUE_IN] = "in", [QUEUE_OUT] = "out"};
    struct device *device = timing->device;
    timing->run.queue = names[timing->queue];
    timing->run.start = device->queue->time(device, timing->begin);
    timing->run.end = device->queue->time(device, timing->end);
    trace_kernel(step->trace, step->number, &timing->run);
}

static struct device_timing *in_order(struct device_timing *last)
{
    struct device_timing *first = NULL;
    for (struct device_timing *before; last; last = before) {
        before = last->next;
        last->next = first;
        first = last;
    }
    return first;
}

void device_step_tell(struct device_step *on_device, const struct step *step, bool has_failed)
{
    if (!atomic_load_explicit(&on_device->timings, memory_order_acquire))
        return;
    struct device_timing *timing = in_order(atomic_exchange(&on_device->timings, NULL));
    for (struct device_timing *next; timing; timing = next) {
        next = timing->next;
        if (!has_failed)
            tell(timing, step);
        device_timing_drop(timing);
    }
}
