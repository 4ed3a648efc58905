/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the CUDA device is ordered by the stream of its compute queue, which its users may rely
 * on. Memory returned to the driver is kept for the next allocation.
 *
 * Host memory is pinned by whole pages, and only pages that lie completely within the given memory.
 * So no page belongs to two users, and none is unpinned while a neighbour's memory is copied. CUDA
 * requires that a copy does not begin in pinned memory and end in other memory: such a copy is
 * split. Pages are pinned once for all devices of the process.
 */
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "ops/device/cuda.h"

/* ---- memory of the device ---- */

static void buffer_free(struct buffer *buffer)
{
    struct cuda_device *d = cuda_device(buffer->owner);
    struct error ignored = ERROR_INIT;
    atomic_fetch_sub(&d->used, buffer->bytes);
    cuda_enter(d, &ignored);
    int result = d->driver->memory_free(d->streams[QUEUE_COMPUTE], buffer->data);
    cuda_check(d, result, "memory is given back", &ignored);
    mem_free(buffer);
}

static struct buffer *new_buffer(struct device *device, void *data, size_t bytes,
                                 void (*free)(struct buffer *))
{
    struct buffer *buffer = mem_alloc(sizeof *buffer);
    atomic_init(&buffer->holders, 1);
    buffer->bytes = bytes;
    buffer->data = data;
    buffer->free = free;
    buffer->owner = device;
    return buffer;
}

/* Not while capturing: captured work would run again when the memory belongs to somebody else. */
static int take_memory(struct cuda_device *d, size_t bytes, void **data, struct error *err)
{
    struct cuda_stream *stream = d->streams[QUEUE_COMPUTE];
    if (cuda_enter(d, err))
        return err->code;
    if (cuda_stream(d, QUEUE_COMPUTE) != stream)
        return cuda_check_enqueued(d, CUDA_NO_MEMORY, "memory", err);
    int result = d->driver->memory_alloc(stream, bytes ? bytes : 1, data);
    if (result == CUDA_NO_MEMORY)
        return error_set(err, ERR_OS, "%zu MiB of %s:%d are in use, and it has no more",
                         atomic_load(&d->used) >> 20, d->device.type, d->device.index);
    return cuda_check(d, result, "memory is asked for", err);
}

static struct buffer *alloc(struct device *device, size_t bytes)
{
    struct cuda_device *d = cuda_device(device);
    struct error err = ERROR_INIT;
    void *data = NULL;
    size_t used = atomic_fetch_add(&d->used, bytes);
    if (bytes > d->limit || used > d->limit - bytes)
        error_set(&err, ERR_OS, "%zu of the %zu KiB of %s:%d are in use", used >> 10,
                  d->limit >> 10, d->device.type, d->device.index);
    if (!err.code && !take_memory(d, bytes, &data, &err))
        return new_buffer(device, data, bytes, buffer_free);
    atomic_fetch_sub(&d->used, bytes);
    mem_refused("%s", err.text);
    return NULL;
}

/* ---- memory of the host ---- */

static void host_buffer_free(struct buffer *buffer)
{
    struct cuda_device *d = cuda_device(buffer->owner);
    struct error ignored = ERROR_INIT;
    cuda_enter(d, &ignored);
    int result = d->driver->host_free(buffer->data);
    cuda_check(d, result, "memory of the host is given back", &ignored);
    mem_free(buffer);
}

/* Allocates pinned memory, or pageable memory if none can be pinned. */
static struct buffer *alloc_host(struct device *device, size_t bytes)
{
    struct cuda_device *d = cuda_device(device);
    struct error ignored = ERROR_INIT;
    void *data = NULL;
    int result = cuda_enter(d, &ignored) ? 0 : d->driver->host_alloc(bytes ? bytes : 1, &data);
    if (result != CUDA_NO_MEMORY)
        cuda_check(d, result, "memory of the host is asked for", &ignored);
    if (!data)
        return buffer_new(bytes);
    return new_buffer(device, data, bytes, host_buffer_free);
}

#define PAGE ((uintptr_t)4096)

struct pinned_pages {
    uintptr_t begin, end;
    const void *shown; /* the memory that the pages are part of */
    int devices;
};

static pthread_mutex_t pages_lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static VEC(struct pinned_pages) pages;                         /* by address */

/* Returns the index of the first pages that end after the address. */
static size_t find_pages(uintptr_t at)
{
    size_t low = 0, high = pages.n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (pages.items[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int pin(struct device *device, const void *data, size_t bytes, struct error *err)
{
    struct cuda_device *d = cuda_device(device);
    struct pinned_pages new = {.begin = ((uintptr_t)data + PAGE - 1) & ~(PAGE - 1),
                               .end = ((uintptr_t)data + bytes) & ~(PAGE - 1),
                               .shown = data,
                               .devices = 1};
    if (new.begin >= new.end)
        return error_set(err, ERR_OS, "there is no whole page to be pinned");
    if (cuda_enter(d, err))
        return err->code;
    pthread_mutex_lock(&pages_lock);
    size_t at = find_pages(new.begin);
    int code = 0;
    int result = 0;
    bool is_there = at < pages.n && pages.items[at].shown == data;
    if (is_there) {
        pages.items[at].devices++;
    } else if ((result = d->driver->host_register((void *)new.begin, new.end - new.begin))) {
        code = error_set(err, ERR_OS, "memory cannot be pinned: %s", d->driver->error_text(result));
    } else {
        vec_push(&pages, new);
        memmove(pages.items + at + 1, pages.items + at, (pages.n - 1 - at) * sizeof new);
        pages.items[at] = new;
    }
    pthread_mutex_unlock(&pages_lock);
    return code;
}

static void unpin(struct device *device, const void *data)
{
    struct cuda_device *d = cuda_device(device);
    struct error ignored = ERROR_INIT;
    cuda_enter(d, &ignored);
    pthread_mutex_lock(&pages_lock);
    size_t at = find_pages(((uintptr_t)data + PAGE - 1) & ~(PAGE - 1));
    if (--pages.items[at].devices == 0) {
        d->driver->host_unregister((void *)pages.items[at].begin);
        memmove(pages.items + at, pages.items + at + 1, (pages.n - at - 1) * sizeof *pages.items);
        pages.n--;
    }
    if (!pages.n)
        vec_release(&pages);
    pthread_mutex_unlock(&pages_lock);
}

/* ---- copies ---- */

/* Returns how many bytes from there on are pinned in one piece, or are not pinned. */
static size_t piece(const void *host, size_t bytes)
{
    uintptr_t begin = (uintptr_t)host, end = begin + bytes;
    pthread_mutex_lock(&pages_lock);
    size_t at = find_pages(begin);
    if (at < pages.n) {
        const struct pinned_pages *next = &pages.items[at];
        uintptr_t border = next->begin <= begin ? next->end : next->begin;
        end = border < end ? border : end;
    }
    pthread_mutex_unlock(&pages_lock);
    return end - begin;
}

static int copy(struct device *device, enum queue_kind queue, void *to, const void *from,
                size_t bytes, struct error *err)
{
    static const struct {
        enum cuda_direction direction;
        const char *what;
    } kinds[N_QUEUES] = {[QUEUE_COMPUTE] = {CUDA_WITHIN_DEVICE, "a copy"},
                         [QUEUE_IN] = {CUDA_TO_DEVICE, "a copy from the host"},
                         [QUEUE_OUT] = {CUDA_TO_HOST, "a copy to the host"}};
    struct cuda_device *d = cuda_device(device);
    int code = cuda_enter(d, err);
    for (size_t n, done = 0; !code && done < bytes; done += n) {
        char *into = (char *)to + done;
        const char *source = (const char *)from + done;
        n = bytes - done;
        if (queue != QUEUE_COMPUTE)
            n = piece(queue == QUEUE_IN ? source : into, n);
        int result =
            d->driver->copy(cuda_stream(d, queue), into, source, n, kinds[queue].direction);
        code = cuda_check_enqueued(d, result, kinds[queue].what, err);
    }
    return code;
}

const struct device_memory cuda_memory = {
    .alloc = alloc,
    .alloc_host = alloc_host,
    .pin = pin,
    .unpin = unpin,
    .copy = copy,
};
