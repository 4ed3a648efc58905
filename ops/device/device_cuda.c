/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening the CUDA device.
 */
#include <stdio.h>

#include "base/memory.h"
#include "ops/device/cuda.h"
#include "ops/device/nccl_cuda.h"

/* ---- driver and devices ---- */

static int check_driver(const struct cuda_driver *driver, int index, struct error *err)
{
    int has = 0, needs = 0;
    int result = driver->versions(&has, &needs);
    if (!result && !has)
        return error_set(err, ERR_UNAVAILABLE,
                         "CUDA:%d: no driver for CUDA is on this machine (libcuda.so.1)", index);
    /* a driver works with all runtimes of its major version */
    if (!result && has / 1000 < needs / 1000)
        return error_set(err, ERR_UNAVAILABLE,
                         "CUDA:%d: the driver is for CUDA %d.%d, and CUDA %d is needed", index,
                         has / 1000, has % 1000 / 10, needs / 1000);
    if (result)
        return error_set(err, ERR_UNAVAILABLE, "CUDA:%d: the driver for CUDA does not answer: %s",
                         index, driver->error_text(result));
    return 0;
}

static int check_index(const struct cuda_driver *driver, int index, struct error *err)
{
    int n = 0, result = driver->device_count(&n);
    if (result == CUDA_NO_DEVICE || (!result && !n))
        return error_set(err, ERR_UNAVAILABLE, "CUDA:%d: this machine has no device for CUDA",
                         index);
    if (result)
        return error_set(err, ERR_UNAVAILABLE, "CUDA:%d: devices cannot be counted: %s", index,
                         driver->error_text(result));
    if (index < 0 || index >= n)
        return error_set(err, ERR_UNAVAILABLE,
                         "CUDA:%d: there is no such device: this machine has %d", index, n);
    return 0;
}

static int read_card(struct cuda_device *d, struct error *err)
{
    struct cuda_card card = {0};
    int index = d->device.index, runtime = 0, version = 0;
    int result = d->driver->set_device(index);
    if (!result)
        result = d->driver->card(index, &card);
    if (!result)
        result = d->driver->versions(&version, &runtime);
    if (!result && card.has_pools)
        result = d->driver->memory_keep(index);
    if (result)
        return error_set(err, ERR_UNAVAILABLE, "CUDA:%d: the device cannot be used: %s", index,
                         d->driver->error_text(result));
    if (!card.has_pools)
        return error_set(err, ERR_UNAVAILABLE,
                         "CUDA:%d: the device or its driver has no pools of memory", index);
    if (!d->limit || d->limit > card.memory)
        d->limit = card.memory;
    d->device.memory_bytes = (int64_t)d->limit;
    snprintf(d->choice, sizeof d->choice, "sm=%d%d cuda=%d.%d%s%s%s", card.major, card.minor,
             runtime / 1000, runtime % 1000 / 10, d->tf32 ? " tf32" : "", d->fast ? " fast" : "",
             d->device.exact ? " exact" : "");
    return 0;
}

/* ---- the device ---- */

static void enter_thread(struct device *device, int threads)
{
    struct error ignored = ERROR_INIT; /* the next driver call returns the error */
    (void)threads;
    cuda_enter(cuda_device(device), &ignored);
}

static const struct kernel_code *no_code(struct device *device, const char *name)
{
    (void)device;
    (void)name;
    return NULL;
}

static void device_close(struct device *device)
{
    struct cuda_device *d = cuda_device(device);
    vec_release(&d->gemms);
    for (int i = 0; i < CUDA_HANDLES; i++)
        cuda_handle_close(&d->handles[i]);
    cuda_queues_close(d);
    d->driver->memory_trim(device->index);
    cuda_choices_close(&d->choices);
    pthread_mutex_destroy(&d->clock_lock);
    pthread_mutex_destroy(&d->peer_lock);
    pthread_mutex_destroy(&d->lock);
    mem_free(d);
}

struct device *cuda_open(const struct cuda_driver *driver, int index,
                         const struct device_options *options, struct error *err)
{
    if (check_driver(driver, index, err) || check_index(driver, index, err))
        return NULL;
    struct cuda_device *d = mem_alloc(sizeof *d);
    struct device *device = &d->device;
    *device = (struct device){.type = "CUDA",
                              .index = index,
                              .threads = 1,
                              .deterministic = options->deterministic,
                              .exact = options->exact,
                              .context = d,
                              .choice = d->choice,
                              .communicators = &cuda_communicators,
                              .enter_thread = enter_thread,
                              .code = no_code,
                              .free = device_close};
    device->memory = &cuda_memory;
    device->queue = &cuda_queue;
    device->peer = &cuda_peer;
    device->capture = &cuda_capture;
    d->driver = driver;
    d->limit = options->memory;
    d->tf32 = options->tf32;
    d->fast = options->fast;
    d->failure = error_none();
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->peer_lock, NULL);
    pthread_mutex_init(&d->clock_lock, NULL);
    for (int i = 0; i < CUDA_HANDLES; i++)
        pthread_mutex_init(&d->handles[i].lock, NULL);
    cuda_choices_init(&d->choices);
    if (!read_card(d, err) && !cuda_queues_open(d, err))
        return device;
    device_close(device);
    return NULL;
}
