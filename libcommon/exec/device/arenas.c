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
    BUG_ON(arenas->all);
    pthread_mutex_destroy(&arenas->lock);
    mem_free(arenas);
}

static void return_arena(struct shared_arena *arena)
{
    if (arena->buffer)
        arena->buffer->free(arena->buffer);
    arena->buffer = NULL;
}

bool arena_is_free(const struct shared_arena *arena)
{
    return arena->buffer && !arena->busy;
}

static bool is_of(const struct shared_arena *arena, const struct device *device, bool on_device)
{
    return arena->device == device && arena->on_device == on_device && arena_is_free(arena);
}

struct shared_arena *arena_take(struct arenas *arenas, struct device *device, bool on_device,
                                size_t bytes)
{
    struct shared_arena *best = NULL; /* the smallest that is large enough */
    for (struct shared_arena *at = arenas->all; at; at = at->next)
        if (is_of(at, device, on_device) && at->bytes >= bytes &&
            (!best || at->bytes < best->bytes))
            best = at;
    if (!best) { /* before the larger one is asked for; who points into them finds them gone */
        for (struct shared_arena *at = arenas->all; at; at = at->next)
            if (is_of(at, device, on_device))
                return_arena(at);
        struct buffer *buffer =
            on_device ? device_alloc(device, bytes) : device_alloc_host(device, bytes);
        if (!buffer)
            return NULL;
        best = mem_alloc(sizeof *best);
        *best = (struct shared_arena){.next = arenas->all,
                                      .device = device,
                                      .on_device = on_device,
                                      .buffer = buffer,
                                      .bytes = bytes};
        arenas->all = best;
    }
    best->busy = true;
    best->holders++;
    return best;
}

void arena_drop(struct arenas *arenas, struct shared_arena *arena)
{
    if (--arena->holders)
        return;
    struct shared_arena **at = &arenas->all;
    while (*at != arena)
        at = &(*at)->next;
    *at = arena->next;
    return_arena(arena);
    mem_free(arena);
}
