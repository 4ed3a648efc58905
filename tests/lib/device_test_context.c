/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes for the TEST device, and for others over its scheduler: by the CPU's kernels, on the
 * device's memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "lib/device_test_internal.h"
#include "ops/ops.h"

_Thread_local bool test_allocates_plain;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static struct test_context *contexts;

/* Finds a device by its `context`, as tests change its kernels and allocators. */
struct test_context *test_context(const struct device *device)
{
    pthread_mutex_lock(&lock);
    struct test_context *context = contexts;
    while (context && context->device->context != device->context)
        context = context->next;
    pthread_mutex_unlock(&lock);
    BUG_ON(!context);
    return context;
}

static void enlist(struct test_context *context)
{
    pthread_mutex_lock(&lock);
    context->next = contexts;
    contexts = context;
    pthread_mutex_unlock(&lock);
}

static void delist(struct test_context *context)
{
    struct test_context **at = &contexts;
    pthread_mutex_lock(&lock);
    while (*at != context)
        at = &(*at)->next;
    *at = context->next;
    pthread_mutex_unlock(&lock);
}

/* ---- faults ---- */

struct fault test_own_fault(struct test_context *context, uint32_t item, const struct error *err)
{
    pthread_mutex_lock(&context->lock);
    vec_push(&context->errors, *err);
    struct fault fault = {item, FAULT_OWN, .value = (int64_t)context->errors.n - 1};
    pthread_mutex_unlock(&context->lock);
    return fault;
}

static int explain(struct device *device, const struct fault *fault, struct error *err)
{
    struct test_context *context = test_context(device);
    pthread_mutex_lock(&context->lock);
    *err = context->errors.items[fault->value];
    pthread_mutex_unlock(&context->lock);
    return err->code;
}

/* ---- code ---- */

/* Returns whether a kernel runs unwrapped: one that waits for the outside uses only host memory. */
static bool runs_as_it_is(const struct kernel_table *table, const char *name)
{
    for (size_t i = 0; i < table->n; i++)
        if (!strcmp(table->rows[i].code, name) && table->rows[i].flags & KERNEL_ASYNC)
            return true;
    return false;
}

const struct kernel_code *test_inner_code(struct test_context *context, const char *name,
                                          bool *is_own)
{
    const struct kernel_code *code = context->cpu->code(context->cpu, name);
    *is_own = !code && context->own;
    return *is_own ? context->own(&context->raw, name) : code;
}

static const struct kernel_code *find_code(struct device *device, const char *name)
{
    bool is_own;
    const struct kernel_code *code = test_inner_code(test_context(device), name, &is_own);
    return !code || runs_as_it_is(device->kernels, name) ? code : &test_kernel;
}

static void enter_thread(struct device *device, int threads)
{
    struct device *cpu = test_context(device)->cpu;
    cpu->enter_thread(cpu, threads);
}

/* ---- the whole ---- */

static void add_rows(struct test_context *context, struct kernel_row *rows, const char *device)
{
    const struct kernel_table *all = ops_kernels();
    for (size_t i = 0; i < all->n; i++) {
        if (strcmp(all->rows[i].device, device) != 0)
            continue;
        struct kernel_row *row = &rows[context->table.n++];
        *row = all->rows[i];
        row->device = context->device->type;
        if (registry_find(ops_registry(), row->op)->def->descent.gradient) {
            row->with_others = "FusedApply"; /* the CPU's rows do not say so for all types */
            row->flags |= KERNEL_JOINED;
        }
    }
}

/* Makes the table: the device's own kernels first; the CPU's replace those that it lacks. */
static void make_table(struct test_context *context)
{
    struct kernel_row *rows = mem_array(ops_kernels()->n + 1, sizeof *rows);
    if (context->own)
        add_rows(context, rows, context->device->type);
    if (!context->own || !context->own_alone)
        add_rows(context, rows, "CPU");
    context->table.rows = rows;
}

/* Copies for kernels that are tried while a plan is made: these use plain memory, at once. */
static int copy_plain(struct device *device, enum queue_kind queue, void *to, const void *from,
                      size_t bytes, struct error *err)
{
    (void)device;
    (void)queue;
    (void)err;
    memcpy(to, from, bytes);
    return 0;
}

void test_context_open(struct test_context *context, struct device *device, struct device *cpu,
                       struct buffer *(*raw_alloc)(struct device *device, size_t bytes))
{
    context->device = device;
    enlist(context);
    context->cpu = cpu;
    pthread_mutex_init(&context->lock, NULL);
    make_table(context);
    device->kernels = &context->table;
    device->threads = cpu->threads;
    device->choice = cpu->choice;
    context->layout = (struct device_layout){cpu->layout->bytes, &test_relayout};
    device->layout = &context->layout;
    device->explain = explain;
    device->leave_fault = test_leave_fault;
    device->code = find_code;
    device->enter_thread = enter_thread;
    context->raw = *device;
    context->raw_memory = *device->memory;
    context->raw_memory.alloc = raw_alloc;
    context->raw_memory.copy = copy_plain;
    context->raw.memory = &context->raw_memory;
    context->pool = pool_new(&context->raw, true);
}

/* Adds a line of counts to a file, for tests that see a tool but not its devices. */
static void tell_counts(const struct test_context *context)
{
    const char *path = getenv("TF_TEST_DEVICE_COUNTS");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "captures %ld launches %ld\n", atomic_load(&context->captures),
            atomic_load(&context->launches));
    fclose(file);
}

void test_context_close(struct test_context *context, void (*finish)(struct device *device))
{
    tell_counts(context);
    pool_free(context->pool);
    delist(context);
    finish(context->device);
    device_free(context->cpu);
    BUG_ON(context->pinned.n);
    vec_release(&context->pinned);
    vec_release(&context->errors);
    pthread_mutex_destroy(&context->lock);
    mem_free((struct kernel_row *)(uintptr_t)context->table.rows);
}

/* ---- counts ---- */

device_test_counts_function device_test_counts;
struct device_test_counts device_test_counts(struct device *device)
{
    struct test_context *context = test_context(device);
    return (struct device_test_counts){.copies_in = atomic_load(&context->copies_in),
                                       .copies_out = atomic_load(&context->copies_out),
                                       .copies = atomic_load(&context->copies),
                                       .kernels = atomic_load(&context->kernels),
                                       .enqueued = atomic_load(&context->enqueued),
                                       .updates = atomic_load(&context->updates),
                                       .captures = atomic_load(&context->captures),
                                       .launches = atomic_load(&context->launches),
                                       .pins = context->pins,
                                       .unpins = context->unpins};
}
