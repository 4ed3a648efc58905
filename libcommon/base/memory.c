/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* From this size on a block is worth the rounding to huge pages: page faults are a visible part of
 * a training step otherwise. */
#define HUGE_PAGE ((size_t)2 << 20)

#define SMALL_BYTES ((size_t)1032) /* the most that glibc's caches of threads hold */

static void default_handler(size_t bytes)
{
    dprintf(STDERR_FILENO, "out of memory: %zu bytes\n", bytes);
    _exit(71);
}

static void (*handler)(size_t bytes) = default_handler;

void mem_set_handler(void (*out_of_memory)(size_t bytes))
{
    handler = out_of_memory;
}

_Noreturn void mem_exhausted(size_t bytes)
{
    handler(bytes);
    abort(); /* the handler has broken its contract */
}

/* Not inlined: gcc would make a calloc of it and the memset that follows. */
static __attribute__((noinline)) void *small_block(size_t bytes)
{
    return malloc(bytes);
}

/* glibc's calloc passes by the thread's cache, from which malloc takes small blocks several times
 * faster. */
void *mem_alloc(size_t bytes)
{
    bool small = bytes && bytes <= SMALL_BYTES;
    void *p = small ? small_block(bytes) : calloc(1, bytes ? bytes : 1);
    if (!p)
        mem_exhausted(bytes);
    return small ? memset(p, 0, bytes) : p;
}

void *mem_array(size_t count, size_t item_bytes)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, item_bytes, &bytes))
        mem_exhausted(SIZE_MAX);
    return mem_alloc(bytes);
}

void *mem_realloc(void *pointer, size_t bytes)
{
    void *p = realloc(pointer, bytes ? bytes : 1);
    if (!p)
        mem_exhausted(bytes);
    return p;
}

char *mem_strndup(const char *text, size_t length)
{
    char *copy = mem_alloc(length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *mem_strdup(const char *text)
{
    return mem_strndup(text, strlen(text));
}

void mem_free(void *pointer)
{
    free(pointer);
}

void *mem_try(size_t bytes)
{
    size_t alignment = bytes >= HUGE_PAGE ? HUGE_PAGE : MEM_ALIGNMENT, rounded;
    if (__builtin_add_overflow(bytes ? bytes : 1, alignment - 1, &rounded) || rounded > PTRDIFF_MAX)
        return NULL;
    rounded &= ~(alignment - 1);
    void *p = aligned_alloc(alignment, rounded);
    if (p && bytes >= HUGE_PAGE)
        madvise(p, rounded, MADV_HUGEPAGE);
    return p;
}

void *mem_try_unaligned(size_t bytes)
{
    return malloc(bytes ? bytes : 1);
}
