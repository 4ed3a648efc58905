/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/memory.h"

/* Often enough for the whole arena: a record's name or two, for instance. With the block's header
 * it fits malloc's per-thread cache. */
#define FIRST_BYTES ((size_t)992)
#define BLOCK_BYTES ((size_t)32 << 10)
#define BLOCK_BYTES_MAX ((size_t)4 << 20)
#define GAP_BYTES ((size_t)(SPOILS_MEMORY ? 16 : 0))

struct arena_block {
    struct arena_block *next;
    size_t bytes;
    _Alignas(16) char data[];
};

/* Pieces are adjacent, so AddressSanitizer would miss a write past the end of one into the next:
 * builds with it leave a guarded gap after each. */
void *arena_alloc(struct arena *arena, size_t bytes)
{
    if (bytes > PTRDIFF_MAX - sizeof(struct arena_block) - 15 - GAP_BYTES)
        mem_exhausted(bytes);
    size_t room = ((bytes + 15) & ~(size_t)15) + GAP_BYTES;
    if (!arena->blocks || room > arena->blocks->bytes - arena->used) {
        /* Blocks grow with the arena, so that a large graph does not pay for thousands of them. */
        size_t total = arena->total, size = total / 4;
        if (total < BLOCK_BYTES)
            size = total < FIRST_BYTES ? FIRST_BYTES : total;
        else if (size < BLOCK_BYTES || size > BLOCK_BYTES_MAX)
            size = size < BLOCK_BYTES ? BLOCK_BYTES : BLOCK_BYTES_MAX;
        if (size < room)
            size = room;
        struct arena_block *block = mem_alloc(sizeof *block + size);
        block->bytes = size;
        block->next = arena->blocks;
        arena->blocks = block;
        arena->used = 0;
        arena->total += size;
    }
    char *p = arena->blocks->data + arena->used;
    arena->used += room;
    guard_memory(p + bytes, room - bytes);
    return p;
}

void *arena_array(struct arena *arena, size_t count, size_t item_bytes)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, item_bytes, &bytes))
        mem_exhausted(SIZE_MAX);
    return arena_alloc(arena, bytes);
}

void *arena_copy(struct arena *arena, const void *data, size_t bytes)
{
    void *p = arena_alloc(arena, bytes);
    if (bytes)
        memcpy(p, data, bytes);
    return p;
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}

char *arena_vprintf(struct arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n < 0) /* longer than an int can count */
        mem_exhausted(SIZE_MAX);
    char *text = arena_alloc(arena, (size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

void arena_release(struct arena *arena)
{
    while (arena->blocks) {
        struct arena_block *next = arena->blocks->next;
        unguard_memory(arena->blocks->data, arena->blocks->bytes);
        mem_free(arena->blocks);
        arena->blocks = next;
    }
    *arena = (struct arena)ARENA_INIT;
}
