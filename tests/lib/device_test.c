/* SPDX-License-Identifier: Apache-2.0
 *
 * The TEST device: memory, copies, and what opens it. device_test_queue.c has the order of what was
 * enqueued, device_test_kernel.c the kernels.
 */
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

static void run_nothing(struct test_job *job, struct error *err)
{
    (void)job;
    (void)err;
}

static void free_memory(struct test_job *job)
{
    struct giving_back *g = (struct giving_back *)job;
    mem_free(g->memory);
    mem_free(g->buffer);
    mem_free(g);
}

/* Behind what was enqueued and uses the memory. */
static void buffer_free(struct buffer *buffer)
{
    struct test_context *context = ((struct device *)buffer->owner)->context;
    struct giving_back *g = mem_alloc(sizeof *g);
    g->job = (struct test_job){.run = run_nothing, .free = free_memory};
    g->buffer = buffer;
    g->memory = test_to_host(buffer->data);
    test_enqueue(&context->queue, &g->job);
}

static struct buffer *raw_alloc(struct device *device, size_t bytes)
{
    void *data = mem_try(bytes);
    if (!data)
        return NULL;
    struct buffer *buffer = mem_alloc(sizeof *buffer);
    atomic_init(&buffer->holders, 1);
    buffer->bytes = bytes;
    buffer->data = data;
    buffer->free = buffer_free;
    buffer->owner = device;
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

struct copy {
    struct test_job job; /* first */
    void *to;
    const void *from;
    size_t bytes;
    bool staged; /* `from` is the copy's own */
};

static void copy_run(struct test_job *job, struct error *err)
{
    struct copy *copy = (struct copy *)job;
    (void)err;
    memcpy(copy->to, copy->from, copy->bytes);
}

static void copy_free(struct test_job *job)
{
    struct copy *copy = (struct copy *)job;
    if (copy->staged)
        mem_free((void *)(uintptr_t)copy->from);
    mem_free(copy);
}

static struct copy *copy_new(void *to, const void *from, size_t bytes)
{
    struct copy *copy = mem_alloc(sizeof *copy);
    copy->job = (struct test_job){.run = copy_run, .free = copy_free};
    copy->to = test_to_host(to);
    copy->from = test_to_host(from);
    copy->bytes = bytes;
    return copy;
}

static int check(const void *to, bool to_device, const void *from, bool from_device, size_t bytes,
                 struct error *err)
{
    if (!bytes || (test_is_device(to) == to_device && test_is_device(from) == from_device))
        return 0;
    return error_set(err, ERR_INTERNAL, "a copy of %zu bytes has an address in other memory",
                     bytes);
}

static int copy_in(struct device *device, void *to, const void *from, size_t bytes, bool wait,
                   struct error *err)
{
    struct test_context *context = device->context;
    if (check(to, true, from, false, bytes, err))
        return err->code;
    if (!bytes)
        return 0;
    struct copy *copy = copy_new(to, from, bytes);
    if (wait) {
        void *stage = mem_alloc(bytes);
        memcpy(stage, from, bytes);
        copy->from = stage;
        copy->staged = true;
    }
    atomic_fetch_add(&context->copies_in, 1);
    test_enqueue(&context->queue, &copy->job);
    return 0;
}

static int copy_out(struct device *device, void *to, const void *from, size_t bytes, bool wait,
                    struct error *err)
{
    struct test_context *context = device->context;
    if (check(to, false, from, true, bytes, err))
        return err->code;
    if (bytes) {
        atomic_fetch_add(&context->copies_out, 1);
        test_enqueue(&context->queue, &copy_new(to, from, bytes)->job);
    }
    return wait ? test_drain(&context->queue, err) : 0;
}

static int copy(struct device *device, void *to, const void *from, size_t bytes, struct error *err)
{
    struct test_context *context = device->context;
    if (check(to, true, from, true, bytes, err))
        return err->code;
    if (!bytes)
        return 0;
    atomic_fetch_add(&context->copies, 1);
    test_enqueue(&context->queue, &copy_new(to, from, bytes)->job);
    return 0;
}

static int sync_queue(struct device *device, struct error *err)
{
    return test_drain(&((struct test_context *)device->context)->queue, err);
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
    struct error ignored = ERROR_INIT;
    pool_free(context->pool);
    test_drain(&context->queue, &ignored);
    test_queue_release(&context->queue);
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
    device->sync = sync_queue;
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
    test_queue_init(&context->queue);
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
                                       .enqueued = atomic_load(&context->enqueued)};
}
