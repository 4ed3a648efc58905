/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"

void vec_grow_(void **items, size_t *capacity, size_t count, size_t item_bytes)
{
    if (count <= *capacity)
        return;
    size_t grown = *capacity ? *capacity * 2 : 8, bytes;
    if (grown < count)
        grown = count;
    if (__builtin_mul_overflow(grown, item_bytes, &bytes))
        mem_exhausted(SIZE_MAX);
    *items = mem_realloc(*items, bytes);
    *capacity = grown;
}

void vec_grow_in_(struct arena *arena, void **items, size_t *capacity, size_t count,
                  size_t item_bytes)
{
    if (count <= *capacity)
        return;
    size_t grown = *capacity ? *capacity * 2 : 8;
    void *moved = arena_array(arena, grown, item_bytes);
    if (*capacity)
        memcpy(moved, *items, *capacity * item_bytes);
    *items = moved;
    *capacity = grown;
}

void vec_free_(void **items, size_t *n, size_t *capacity)
{
    mem_free(*items);
    *items = NULL;
    *n = *capacity = 0;
}
