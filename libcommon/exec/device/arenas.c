/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/device/arenas.h"

#include "base/memory.h"

struct arenas *arenas_new(void)
{
    struct arenas *arenas = mem_alloc(sizeof *arenas);
    pthread_mutex_init(&arenas->lock, NULL);
    return arenas;
}

void arenas_free(struct arenas *arenas)
{
    if (!arenas)
        return;
    arenas_trim(arenas, NULL, false);
    BUG_ON(arenas->all);
    pthread_mutex_destroy(&arenas->lock);
    mem_free(arenas);
}

void arenas_trim(struct arenas *arenas, const struct device *device, bool on_device)
{
    for (struct shared_arena **at = &arenas->all, *arena; (arena = *at);) {
        if (arena->busy || (device && (arena->device != device || arena->on_device != on_device))) {
            at = &arena->next;
            continue;
        }
        *at = arena->next;
        arena->buffer->free(arena->buffer);
        mem_free(arena);
    }
}

struct shared_arena *arena_take(struct arenas *arenas, const struct shared_arena *wanted)
{
    struct device *device = wanted->device;
    struct shared_arena *best = NULL; /* the smallest that is large enough */
    for (struct shared_arena *at = arenas->all; at; at = at->next)
        if (!at->busy && at->device == device && at->on_device == wanted->on_device &&
            at->bytes >= wanted->bytes &&
            (!best || at == wanted->next || (best != wanted->next && at->bytes < best->bytes)))
            best = at;
    if (!best) { /* before a larger one is allocated */
        arenas_trim(arenas, device, wanted->on_device);
        struct buffer *buffer = wanted->on_device ? device_alloc(device, wanted->bytes)
                                                  : device_alloc_host(device, wanted->bytes);
        if (!buffer)
            return NULL;
        best = mem_alloc(sizeof *best);
        *best = *wanted;
        best->buffer = buffer;
        best->next = arenas->all;
        arenas->all = best;
    }
    best->busy = true;
    return best;
}
