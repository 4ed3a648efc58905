/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU as a device: host memory, no queue, kernels by name.
 */
#include <cblas.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/vec.h"
#include "exec/device/module.h"
#include "ops/device/cpu.h"
#include "ops/device/widened_cpu.h"
#include "ops/math/parallel_cpu.h"

#define KERNEL(op, code, types, ...) extern const struct kernel_code kernel_##code;
#include "ops/kernels_cpu.def"

static const struct code {
    const char *name;
    const struct kernel_code *code;
} codes[] = {
#define KERNEL(op, code, types, ...) {#code, &kernel_##code},
#include "ops/kernels_cpu.def"
};

#if defined(__AVX512F__)
#define ISA "v4"
#elif defined(__AVX2__)
#define ISA "v3"
#else
#define ISA "base"
#endif

static struct buffer *alloc(struct device *device, size_t bytes)
{
    (void)device;
    return buffer_new(bytes);
}

static int copy(struct device *device, enum queue_kind queue, void *to, const void *from,
                size_t bytes, struct error *err)
{
    (void)device;
    (void)queue;
    (void)err;
    if (bytes)
        memcpy(to, from, bytes);
    return 0;
}

static const struct kernel_code *find_code(struct device *device, const char *name)
{
    if (!strncmp(name, CPU_WIDENED, strlen(CPU_WIDENED)))
        return find_code(device, name + strlen(CPU_WIDENED)) ? &kernel_widened : NULL;
    if (!strncmp(name, CPU_BOUNDED, strlen(CPU_BOUNDED)))
        return find_code(device, name + strlen(CPU_BOUNDED)) ? &kernel_bounded : NULL;
    size_t n = sizeof codes / sizeof *codes, i = names_find(codes, n, name);
    return i < n ? codes[i].code : NULL;
}

static void block_signals(void *context, int index, int n)
{
    sigset_t all;
    (void)context;
    (void)n;
    sigfillset(&all);
    if (index)
        pthread_sigmask(SIG_SETMASK, &all, NULL);
}

void cpu_set_team(int threads)
{
    static _Thread_local int team = 1;
    int limit = omp_get_thread_limit();
    int n = threads < limit ? threads : limit;
    omp_set_dynamic(0);
    omp_set_num_threads(n);
    if (n > 1 && n != team)
        team_run(n, block_signals, NULL);
    team = n > 1 ? n : team;
}

/* OpenBLAS' OpenMP build and oneDNN both use the calling thread's team size. */
static void enter_thread(struct device *device, int threads)
{
    (void)device;
    cpu_set_team(threads);
}

static void device_close(struct device *device)
{
    struct cpu_context *context = cpu_context(device);
    dnnl_stream_destroy(context->stream);
    dnnl_engine_destroy(context->engine);
    while (context->layouts) {
        struct layout *next = context->layouts->next;
        mem_free(context->layouts);
        context->layouts = next;
    }
    pthread_mutex_destroy(&context->lock);
    mem_free(context);
}

int cpu_dnnl_check(dnnl_status_t status, const char *what, struct error *err)
{
    if (status == dnnl_success)
        return 0;
    if (status == dnnl_out_of_memory)
        return error_set(err, ERR_OS, "no memory for %s", what);
    return error_set(err, ERR_INTERNAL, "oneDNN: %s: status %d", what, (int)status);
}

static int open_dnnl(struct cpu_context *context, struct error *err)
{
    /* A module requested by name computes as on a machine that supports no better one. */
    const char *wanted = getenv("TF_CPU_ISA");
    if (CPU_DNNL_COMPUTES && wanted && !strcmp(wanted, ISA) && strcmp(ISA, "v4") != 0)
        dnnl_set_max_cpu_isa(strcmp(ISA, "v3") ? dnnl_cpu_isa_sse41 : dnnl_cpu_isa_avx2);
    if (cpu_dnnl_check(dnnl_engine_create(&context->engine, dnnl_cpu, 0), "engine", err))
        return err->code;
    if (cpu_dnnl_check(
            dnnl_stream_create(&context->stream, context->engine, dnnl_stream_default_flags),
            "stream", err)) {
        dnnl_engine_destroy(context->engine);
        return err->code;
    }
    return 0;
}

static const struct device_memory memory = {.alloc = alloc, .copy = copy};
static const struct device_layout layout = {cpu_layout_bytes, &cpu_relayout};

static struct device *device_new(int index, const struct device_options *options, struct error *err)
{
    struct cpu_context *context = mem_alloc(sizeof *context);
    if (open_dnnl(context, err)) {
        mem_free(context);
        return NULL;
    }
    pthread_mutex_init(&context->lock, NULL);
    struct device *device = &context->device;
    device->type = "CPU";
    device->index = index;
    device->is_host = true;
    device->threads = options->threads > 0 ? options->threads : cores_usable();
    device->deterministic = options->deterministic;
    device->exact = options->exact;
    device->context = context;
    snprintf(context->choice, sizeof context->choice, "isa=%s blas=%s libm=%04x threads=%d%s", ISA,
             openblas_get_corename(), cpu_libm(), device->threads, device->exact ? " exact" : "");
    device->choice = context->choice;
    device->memory = &memory;
    device->layout = &layout;
    device->code = find_code;
    device->enter_thread = enter_thread;
    device->free = device_close;
    return device;
}

const struct device_entry device_entry = {DEVICE_ABI, device_new};
