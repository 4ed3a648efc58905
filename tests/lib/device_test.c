/* SPDX-License-Identifier: Apache-2.0
 *
 * The TEST device: memory, and opening it. device_test_queue.c does enqueued work,
 * device_test_order.c checks its order, device_test_context.c has the kernels.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "lib/device_test_internal.h"

struct test_device {
    struct test_context context; /* first */
    struct device device;
    struct test_scheduler scheduler;
    size_t memory; /* bytes of the device */
};

static struct test_scheduler *scheduler_of(const struct device *device)
{
    return &((struct test_device *)device->context)->scheduler;
}

/* ---- memory ---- */

struct giving_back {
    struct test_job job; /* first */
    struct buffer *buffer;
    void *memory; /* plain address, which a leak detector can follow */
};

static void free_memory(struct test_job *job)
{
    struct giving_back *g = (struct giving_back *)job;
    mem_free(g->memory);
    mem_free(g->buffer);
    mem_free(g);
}

static void buffer_free(struct buffer *buffer)
{
    struct giving_back *g = mem_alloc(sizeof *g);
    g->job = (struct test_job){.free = free_memory};
    g->buffer = buffer;
    g->memory = test_to_host(buffer->data);
    test_enqueue_free(scheduler_of(buffer->owner), QUEUE_COMPUTE, &g->job, g->memory);
}

static bool has_memory(struct test_device *t, size_t bytes)
{
    pthread_mutex_lock(&t->scheduler.lock);
    bool has = t->scheduler.order.bytes + bytes <= t->memory;
    pthread_mutex_unlock(&t->scheduler.lock);
    return has;
}

static struct buffer *raw_alloc(struct device *device, size_t bytes)
{
    struct test_device *t = device->context;
    void *data = has_memory(t, bytes) ? mem_try(bytes) : NULL;
    test_capture_refuse(&t->scheduler, "memory is asked for");
    if (!data)
        return NULL;
    struct buffer *buffer = mem_alloc(sizeof *buffer);
    atomic_init(&buffer->holders, 1);
    buffer->bytes = bytes;
    buffer->data = data;
    buffer->free = buffer_free;
    buffer->owner = device;
    test_allocated(&t->scheduler, data, bytes);
    return buffer;
}

static struct buffer *alloc(struct device *device, size_t bytes)
{
    struct buffer *buffer = raw_alloc(device, bytes);
    if (buffer && !test_allocates_plain)
        buffer->data = test_to_device(buffer->data);
    return buffer;
}

/* ---- copies ---- */

static int copy(struct device *device, enum queue_kind queue, void *to, const void *from,
                size_t bytes, struct error *err)
{
    struct test_context *context = test_context(device);
    atomic_long *counts[] = {[QUEUE_COMPUTE] = &context->copies,
                             [QUEUE_IN] = &context->copies_in,
                             [QUEUE_OUT] = &context->copies_out};
    const struct test_copying copying = {queue != QUEUE_OUT, queue != QUEUE_IN, to, from, bytes};
    if (bytes)
        atomic_fetch_add(counts[queue], 1);
    return test_enqueue_copy(scheduler_of(device), (int)queue, &copying, err);
}

/* ---- events ---- */

static struct test_event *event_of(struct device_event *event)
{
    return (struct test_event *)event;
}

static struct device_event *record(struct device *device, enum queue_kind queue, bool timed)
{
    (void)timed;
    return (struct device_event *)test_record(scheduler_of(device), (int)queue);
}

static int64_t event_time(struct device *device, struct device_event *event)
{
    return test_time(scheduler_of(device), event_of(event));
}

static void wait_for(struct device *device, enum queue_kind queue, struct device_event *event)
{
    test_wait(scheduler_of(device), (int)queue, event_of(event));
}

static void notify(struct device *device, struct device_event *event, struct event_waiter *waiter)
{
    test_notify(scheduler_of(device), event_of(event), waiter);
}

static int block(struct device *device, struct device_event *event, struct error *err)
{
    return test_block(scheduler_of(device), event_of(event), err);
}

static void event_free(struct device *device, struct device_event *event)
{
    (void)device;
    test_event_free(event_of(event));
}

/* ---- captured work ---- */

static int capture(struct device *device, int (*enqueue)(void *context), void *context,
                   struct device_graph **graph, struct error *err)
{
    struct test_graph *captured;
    test_capture_begin(scheduler_of(device), QUEUE_COMPUTE);
    int failed = enqueue(context), code = test_capture_end(scheduler_of(device), &captured, err);
    *graph = (struct device_graph *)captured;
    if (failed && !code) {
        test_graph_free(captured);
        *graph = NULL;
    }
    if (failed)
        return error_set(err, ERR_INTERNAL, "what was to be captured failed");
    if (!code)
        atomic_fetch_add(&test_context(device)->captures, 1);
    return code;
}

static int launch(struct device *device, struct device_graph *graph, struct error *err)
{
    atomic_fetch_add(&test_context(device)->launches, 1);
    return test_launch(scheduler_of(device), QUEUE_COMPUTE, (struct test_graph *)graph, err);
}

static void free_graph(struct device *device, struct device_graph *graph)
{
    (void)device;
    test_graph_free((struct test_graph *)graph);
}

/* ---- the device ---- */

static void finish(struct device *device)
{
    test_scheduler_release(scheduler_of(device));
}

static void device_close(struct device *device)
{
    struct test_device *t = device->context;
    test_context_close(&t->context, finish);
    mem_free(t);
}

static int compute_line(struct test_context *context)
{
    (void)context;
    return QUEUE_COMPUTE;
}

static void set_functions(struct device *device)
{
    static const struct device_memory memory = {
        .alloc = alloc, .pin = test_pin, .unpin = test_unpin, .copy = copy};
    static const struct device_queue queue = {.record = record,
                                              .event_free = event_free,
                                              .time = event_time,
                                              .wait = wait_for,
                                              .notify = notify,
                                              .block = block};
    static const struct device_capture capturing = {capture, launch, free_graph};
    device->memory = &memory;
    device->queue = &queue;
    const char *captures = getenv("TF_TEST_DEVICE_CAPTURE");
    if (!captures || strcmp(captures, "0") != 0)
        device->capture = &capturing;
    device->free = device_close;
}

static struct device *device_new(int index, const struct device_options *options, struct error *err)
{
    struct device *cpu = device_open("CPU", index, options, err);
    if (!cpu)
        return NULL;
    struct test_device *t = mem_alloc(sizeof *t);
    struct device *device = &t->device;
    const char *memory = getenv("TF_TEST_DEVICE_MEMORY");
    t->memory = memory ? strtoul(memory, NULL, 10) : SIZE_MAX;
    *device = (struct device){
        .type = "TEST", .index = cpu->index, .deterministic = cpu->deterministic, .context = t};
    set_functions(device);
    t->context.scheduler = &t->scheduler;
    t->context.compute_line = compute_line;
    test_scheduler_init(&t->scheduler, N_QUEUES);
    test_context_open(&t->context, device, cpu, raw_alloc);
    return device;
}

const struct device_entry device_entry = {DEVICE_ABI, device_new};
