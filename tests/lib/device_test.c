/* SPDX-License-Identifier: Apache-2.0
 *
 * The TEST device: memory, copies, and what opens it. device_test_queue.c does what was enqueued,
 * device_test_order.c says what may be before what, device_test_kernel.c has the kernels.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "lib/device_test_internal.h"
#include "ops/ops.h"

/* ---- memory ---- */

struct giving_back {
    struct test_job job; /* first */
    struct buffer *buffer;
    void *memory; /* its plain address, which a leak detector can follow */
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
    struct test_context *context = ((struct device *)buffer->owner)->context;
    struct giving_back *g = mem_alloc(sizeof *g);
    g->job = (struct test_job){.free = free_memory};
    g->buffer = buffer;
    g->memory = test_to_host(buffer->data);
    test_enqueue_free(&context->scheduler, &g->job, g->memory);
}

static bool has_memory(struct test_context *context, size_t bytes)
{
    pthread_mutex_lock(&context->scheduler.lock);
    bool has = context->scheduler.order.bytes + bytes <= context->memory;
    pthread_mutex_unlock(&context->scheduler.lock);
    return has;
}

static struct buffer *raw_alloc(struct device *device, size_t bytes)
{
    struct test_context *context = device->context;
    void *data = has_memory(context, bytes) ? mem_try(bytes) : NULL;
    if (!data)
        return NULL;
    struct buffer *buffer = mem_alloc(sizeof *buffer);
    atomic_init(&buffer->holders, 1);
    buffer->bytes = bytes;
    buffer->data = data;
    buffer->free = buffer_free;
    buffer->owner = device;
    test_allocated(&context->scheduler, data, bytes);
    return buffer;
}

_Thread_local bool test_allocates_plain;

static struct buffer *alloc(struct device *device, size_t bytes)
{
    struct buffer *buffer = raw_alloc(device, bytes);
    if (buffer && !test_allocates_plain)
        buffer->data = test_to_device(buffer->data);
    return buffer;
}

/* ---- copies ---- */

struct test_copy {
    struct test_job job; /* first */
    struct test_context *context;
    void *to;
    const void *from;
    size_t bytes;
    uint64_t sum; /* of the host's memory when the copy was enqueued */
    bool from_host;
};

/* FNV-1a. */
static uint64_t sum_of(const unsigned char *bytes, size_t n)
{
    uint64_t sum = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3;
    return sum;
}

static void copy_run(struct test_job *job)
{
    struct test_copy *copy = (struct test_copy *)job;
    if (copy->from_host && sum_of(copy->from, copy->bytes) != copy->sum)
        test_fail(&copy->context->scheduler,
                  "the TEST device: %zu bytes of the host changed before they were copied",
                  copy->bytes);
    memcpy(copy->to, copy->from, copy->bytes);
}

static void copy_free(struct test_job *job)
{
    mem_free((struct test_copy *)job);
}

static int check(const void *to, bool to_device, const void *from, bool from_device, size_t bytes,
                 struct error *err)
{
    if (!bytes || (test_is_device(to) == to_device && test_is_device(from) == from_device))
        return 0;
    return error_set(err, ERR_INTERNAL, "a copy of %zu bytes has an address in other memory",
                     bytes);
}

static int enqueue_copy(struct device *device, enum queue_kind queue, void *to, const void *from,
                        size_t bytes, struct error *err)
{
    struct test_context *context = device->context;
    struct test_access accesses[2];
    int n = 0;
    struct test_copy *copy = mem_alloc(sizeof *copy);
    copy->job = (struct test_job){.run = copy_run, .free = copy_free};
    copy->context = context;
    copy->to = test_to_host(to);
    copy->from = test_to_host(from);
    copy->bytes = bytes;
    copy->from_host = !test_is_device(from);
    if (copy->from_host)
        copy->sum = sum_of(from, bytes);
    else
        accesses[n++] = (struct test_access){copy->from, bytes, false};
    if (!test_is_device(to))
        memset(to, 0xa5, bytes);
    else
        accesses[n++] = (struct test_access){copy->to, bytes, true};
    return test_enqueue(&context->scheduler, queue, &copy->job, accesses, n, err);
}

static int copy_in(struct device *device, void *to, const void *from, size_t bytes,
                   struct error *err)
{
    if (check(to, true, from, false, bytes, err))
        return err->code;
    if (!bytes)
        return 0;
    atomic_fetch_add(&((struct test_context *)device->context)->copies_in, 1);
    return enqueue_copy(device, QUEUE_IN, to, from, bytes, err);
}

static int copy_out(struct device *device, void *to, const void *from, size_t bytes,
                    struct error *err)
{
    if (check(to, false, from, true, bytes, err))
        return err->code;
    if (!bytes)
        return 0;
    atomic_fetch_add(&((struct test_context *)device->context)->copies_out, 1);
    return enqueue_copy(device, QUEUE_OUT, to, from, bytes, err);
}

static int copy(struct device *device, void *to, const void *from, size_t bytes, struct error *err)
{
    if (check(to, true, from, true, bytes, err))
        return err->code;
    if (!bytes)
        return 0;
    atomic_fetch_add(&((struct test_context *)device->context)->copies, 1);
    return enqueue_copy(device, QUEUE_COMPUTE, to, from, bytes, err);
}

/* ---- events ---- */

static struct test_scheduler *scheduler_of(struct device *device)
{
    return &((struct test_context *)device->context)->scheduler;
}

static struct device_event *record(struct device *device, enum queue_kind queue)
{
    return test_record(scheduler_of(device), queue);
}

static void wait_for(struct device *device, enum queue_kind queue, struct device_event *event)
{
    test_wait(scheduler_of(device), queue, event);
}

static bool query(struct device *device, struct device_event *event)
{
    return test_query(scheduler_of(device), event);
}

static void notify(struct device *device, struct device_event *event, struct event_waiter *waiter)
{
    test_notify(scheduler_of(device), event, waiter);
}

static int block(struct device *device, struct device_event *event, struct error *err)
{
    return test_block(scheduler_of(device), event, err);
}

static void event_free(struct device *device, struct device_event *event)
{
    (void)device;
    test_event_free(event);
}

/* ---- the device ---- */

static struct device *cpu_of(struct device *device)
{
    return ((struct test_context *)device->context)->cpu;
}

/* What waits for the outside has to do with host memory only, and runs as it is. */
static bool runs_as_it_is(const struct kernel_table *table, const char *name)
{
    for (size_t i = 0; i < table->n; i++)
        if (!strcmp(table->rows[i].code, name) && table->rows[i].flags & KERNEL_ASYNC)
            return true;
    return false;
}

static const struct kernel_code *find_code(struct device *device, const char *name)
{
    const struct kernel_code *code = cpu_of(device)->code(cpu_of(device), name);
    return !code || runs_as_it_is(device->kernels, name) ? code : &test_kernel;
}

static void enter_thread(struct device *device, int threads)
{
    cpu_of(device)->enter_thread(cpu_of(device), threads);
}

static void device_close(struct device *device)
{
    struct test_context *context = device->context;
    pool_free(context->pool);
    test_scheduler_release(&context->scheduler);
    device_free(context->cpu);
    mem_free((struct kernel_row *)(uintptr_t)context->table.rows);
    mem_free(context);
}

static void make_table(struct test_context *context)
{
    const struct kernel_table *all = ops_kernels();
    struct kernel_row *rows = mem_array(all->n + 1, sizeof *rows);
    for (size_t i = 0; i < all->n; i++) {
        if (strcmp(all->rows[i].device, "CPU") != 0)
            continue;
        rows[context->table.n] = all->rows[i];
        rows[context->table.n++].device = "TEST";
    }
    context->table.rows = rows;
}

static void set_functions(struct device *device)
{
    device->alloc = alloc;
    device->copy_in = copy_in;
    device->copy_out = copy_out;
    device->copy = copy;
    device->record = record;
    device->wait = wait_for;
    device->query = query;
    device->notify = notify;
    device->block = block;
    device->event_free = event_free;
    device->code = find_code;
    device->relayout = &test_relayout;
    device->enter_thread = enter_thread;
    device->free = device_close;
}

static struct device *device_new(int index, const struct device_options *options, struct error *err)
{
    struct device *cpu = device_open("CPU", index, options, err);
    if (!cpu)
        return NULL;
    struct test_context *context = mem_alloc(sizeof *context);
    struct device *device = &context->device;
    *device = *cpu; /* layouts, options */
    device->type = "TEST";
    device->is_host = false;
    device->context = context;
    set_functions(device);
    context->cpu = cpu;
    make_table(context);
    device->kernels = &context->table;
    context->raw = *device;
    context->raw.alloc = raw_alloc;
    context->pool = pool_new(&context->raw, true);
    const char *memory = getenv("TF_TEST_DEVICE_MEMORY");
    context->memory = memory ? strtoul(memory, NULL, 10) : SIZE_MAX;
    test_scheduler_init(&context->scheduler);
    return device;
}

extern const struct device_entry device_entry;
const struct device_entry device_entry = {DEVICE_ABI, device_new};

device_test_counts_function device_test_counts;
struct device_test_counts device_test_counts(struct device *device)
{
    struct test_context *context = device->context;
    return (struct device_test_counts){.copies_in = atomic_load(&context->copies_in),
                                       .copies_out = atomic_load(&context->copies_out),
                                       .copies = atomic_load(&context->copies),
                                       .kernels = atomic_load(&context->kernels),
                                       .enqueued = atomic_load(&context->enqueued),
                                       .updates = atomic_load(&context->updates)};
}
