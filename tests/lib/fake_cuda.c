/* SPDX-License-Identifier: Apache-2.0
 *
 * The module: the CUDA device over the fake driver. Its kernels are CUDA's own, emulated, if they
 * are built in, and the CPU's for ops that have none; TF_TEST_DEVICE_KERNELS=cpu: only the CPU's;
 * =own: only its own, as on a card.
 */
#include "lib/fake_cuda.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "lib/fake_cuda_driver.h"
#include "ops/device/kernel_cuda.h"

/* NULL in a build that cannot emulate them. */
#pragma weak cuda_kernel_code

struct fake_device {
    struct test_context context; /* first */
    struct fake_card *card;
    struct device real; /* the CUDA device's own functions */
    struct device_memory memory;
    struct device_capture capture;
};

static struct fake_device *fake(const struct device *device)
{
    return (struct fake_device *)test_context(device);
}

/* ---- memory for the CPU's kernels ---- */

static struct buffer *alloc(struct device *device, size_t bytes)
{
    struct buffer *buffer = fake(device)->real.memory->alloc(device, bytes);
    if (buffer && test_allocates_plain)
        buffer->data = test_to_host(buffer->data);
    return buffer;
}

static struct buffer *raw_alloc(struct device *device, size_t bytes)
{
    struct buffer *buffer = fake(device)->real.memory->alloc(device, bytes);
    if (buffer)
        buffer->data = test_to_host(buffer->data);
    return buffer;
}

/* ---- what is counted ---- */

static int copy(struct device *device, enum queue_kind queue, void *to, const void *from,
                size_t bytes, struct error *err)
{
    struct test_context *context = &fake(device)->context;
    atomic_long *counts[] = {[QUEUE_COMPUTE] = &context->copies,
                             [QUEUE_IN] = &context->copies_in,
                             [QUEUE_OUT] = &context->copies_out};
    if (bytes)
        atomic_fetch_add(counts[queue], 1);
    return fake(device)->real.memory->copy(device, queue, to, from, bytes, err);
}

static int capture(struct device *device, int (*enqueue)(void *context), void *context,
                   struct device_graph **graph, struct error *err)
{
    int code = fake(device)->real.capture->capture(device, enqueue, context, graph, err);
    if (!code)
        atomic_fetch_add(&fake(device)->context.captures, 1);
    return code;
}

static int launch(struct device *device, struct device_graph *graph, struct error *err)
{
    atomic_fetch_add(&fake(device)->context.launches, 1);
    return fake(device)->real.capture->launch(device, graph, err);
}

/* ---- time ---- */

static void pass(struct test_job *job)
{
    (void)job;
}

static void free_job(struct test_job *job)
{
    mem_free(job);
}

void fake_take_time(struct cuda_stream *stream)
{
    struct error ignored = ERROR_INIT;
    struct test_job *job = mem_alloc(sizeof *job);
    *job = (struct test_job){.run = pass, .free = free_job};
    test_enqueue(stream->card->scheduler, stream->line, job, NULL, 0, &ignored);
}

/* ---- the device ---- */

static int compute_line(struct test_context *context)
{
    return cuda_stream(cuda_device(context->device), QUEUE_COMPUTE)->line;
}

static int failed(struct device *device, struct error *err)
{
    return cuda_check_enqueued(cuda_device(device), FAKE_FAILED, "a kernel is launched", err);
}

static void finish(struct device *device)
{
    device->free(device);
}

static void device_close(struct device *device)
{
    struct fake_device *f = fake(device);
    device->free = f->real.free;
    test_context_close(&f->context, finish);
    fake_card_drop(f->card);
    mem_free(f);
}

static void set_functions(struct fake_device *f, struct device *device)
{
    f->memory = *device->memory;
    f->memory.alloc = alloc;
    f->memory.copy = copy;
    f->capture = (struct device_capture){capture, launch, device->capture->free};
    device->memory = &f->memory;
    device->free = device_close;
    const char *captures = getenv("TF_TEST_DEVICE_CAPTURE");
    bool does_capture = !captures || strcmp(captures, "0") != 0;
    device->capture = does_capture ? &f->capture : NULL;
}

static struct device *device_new(int index, const struct device_options *options, struct error *err)
{
    struct fake_card *card = fake_card_hold(index);
    struct device *cpu = device_open("CPU", 0, options, err);
    struct device *device = cpu ? cuda_open(&fake_cuda_driver, index, options, err) : NULL;
    if (!device) {
        device_free(cpu);
        fake_card_drop(card);
        return NULL;
    }
    struct fake_device *f = mem_alloc(sizeof *f);
    f->card = card;
    f->real = *device;
    f->context.scheduler = card->scheduler;
    f->context.compute_line = compute_line;
    f->context.failed = failed;
    cuda_device(device)->blas = &fake_cuda_blas;
    cuda_device(device)->lt = &fake_cuda_lt;
    cuda_device(device)->solver = &fake_cuda_solver;
    cuda_device(device)->dnn = &fake_cuda_dnn;
    cuda_device(device)->nccl = &fake_cuda_nccl;
    const char *kernels = getenv("TF_TEST_DEVICE_KERNELS");
    if (!kernels || strcmp(kernels, "cpu") != 0)
        f->context.own = cuda_kernel_code;
    f->context.own_alone = kernels && !strcmp(kernels, "own");
    set_functions(f, device);
    test_context_open(&f->context, device, cpu, raw_alloc);
    return device;
}

const struct device_entry device_entry = {DEVICE_ABI, device_new};
