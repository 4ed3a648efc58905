/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Blocks of this size and more ask for huge pages, as page faults would take a visible part of a
 * training step. The rest after the last whole page gets another if it fills half of it. */
#define HUGE_PAGE ((size_t)2 << 20)

#define SMALL_BYTES ((size_t)1032) /* the largest block in glibc's per-thread caches */

static void default_handler(size_t bytes)
{
    dprintf(STDERR_FILENO, "out of memory: %zu bytes\n", bytes);
    _exit(71);
}

static void (*handler)(size_t bytes) = default_handler;

bool mem_has_handler(void)
{
    return handler != default_handler;
}

void mem_set_handler(void (*out_of_memory)(size_t bytes))
{
    handler = out_of_memory;
}

_Noreturn void mem_exhausted(size_t bytes)
{
    handler(bytes);
    abort(); /* the handler has returned, against its contract */
}

/* ---- the limit ---- */

#define COUNTED_BYTES ((size_t)64 << 10)

static struct {
    int64_t bytes; /* 0: no limit */
    char whose[64];
    atomic_int_least64_t used;
    pthread_mutex_t lock; /* of the list of reclaimers; held while they give back */
    struct mem_reclaimer *reclaimers;
} limit = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local bool was_refused;

void mem_set_limit(size_t bytes, const char *whose)
{
    limit.bytes = bytes < INT64_MAX ? (int64_t)bytes : 0;
    snprintf(limit.whose, sizeof limit.whose, "%s", whose);
}

static _Thread_local char refusal[256]; /* why the last allocation was refused; "": it was not */

void mem_refused(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(refusal, sizeof refusal, format, args);
    va_end(args);
}

const char *mem_limit_text(void)
{
    static _Thread_local char text[sizeof refusal + 2];
    if (*refusal) {
        snprintf(text, sizeof text, ": %s", refusal);
        *refusal = '\0';
        return text;
    }
    if (!was_refused)
        return "";
    snprintf(text, sizeof text, ": the %lld MiB of %s are in use", (long long)(limit.bytes >> 20),
             limit.whose);
    return text;
}

void mem_reclaimer_add(struct mem_reclaimer *reclaimer)
{
    pthread_mutex_lock(&limit.lock);
    reclaimer->next = limit.reclaimers;
    reclaimer->at = &limit.reclaimers;
    if (reclaimer->next)
        reclaimer->next->at = &reclaimer->next;
    limit.reclaimers = reclaimer;
    pthread_mutex_unlock(&limit.lock);
}

void mem_reclaimer_remove(struct mem_reclaimer *reclaimer)
{
    pthread_mutex_lock(&limit.lock);
    if (reclaimer->at)
        *reclaimer->at = reclaimer->next;
    if (reclaimer->at && reclaimer->next)
        reclaimer->next->at = reclaimer->at;
    reclaimer->at = NULL;
    pthread_mutex_unlock(&limit.lock);
}

void mem_reclaim(void)
{
    pthread_mutex_lock(&limit.lock);
    for (struct mem_reclaimer *reclaimer = limit.reclaimers; reclaimer; reclaimer = reclaimer->next)
        reclaimer->give_back(reclaimer);
    pthread_mutex_unlock(&limit.lock);
}

static bool take_bytes(size_t bytes)
{
    int64_t n = (int64_t)bytes;
    if (bytes <= (size_t)limit.bytes && atomic_fetch_add(&limit.used, n) + n <= limit.bytes)
        return true;
    if (bytes <= (size_t)limit.bytes)
        atomic_fetch_sub(&limit.used, n);
    return false;
}

bool mem_is_limited(void)
{
    return limit.bytes;
}

bool mem_charge(size_t bytes)
{
    was_refused = false;
    if (!limit.bytes || take_bytes(bytes))
        return true;
    mem_reclaim();
    was_refused = !take_bytes(bytes);
    return !was_refused;
}

void mem_discharge(size_t bytes)
{
    if (limit.bytes)
        atomic_fetch_sub(&limit.used, (int64_t)bytes);
}

/* Counts a block that was allocated, with a limit or without. */
static void count(void *pointer, int sign)
{
    size_t bytes = limit.bytes && pointer ? malloc_usable_size(pointer) : 0;
    if (bytes >= COUNTED_BYTES)
        atomic_fetch_add(&limit.used, sign * (int64_t)bytes);
}

/* ---- blocks ---- */

/* Not inlined: gcc would merge it and the memset that follows into a calloc. */
static __attribute__((noinline)) void *small_block(size_t bytes)
{
    return malloc(bytes);
}

/* glibc's calloc bypasses the per-thread cache, from which malloc serves small blocks several times
 * faster. */
void *mem_alloc(size_t bytes)
{
    bool small = bytes && bytes <= SMALL_BYTES;
    void *p = small ? small_block(bytes) : calloc(1, bytes ? bytes : 1);
    if (!p)
        mem_exhausted(bytes);
    if (bytes >= COUNTED_BYTES)
        count(p, 1);
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
    count(pointer, -1);
    void *p = realloc(pointer, bytes ? bytes : 1);
    if (!p)
        mem_exhausted(bytes);
    count(p, 1);
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
    count(pointer, -1);
    free(pointer);
}

void *mem_try(size_t bytes)
{
    size_t alignment = bytes >= HUGE_PAGE ? HUGE_PAGE : MEM_ALIGNMENT, rounded;
    if (__builtin_add_overflow(bytes ? bytes : 1, alignment - 1, &rounded) || rounded > PTRDIFF_MAX)
        return NULL;
    rounded &= ~(alignment - 1);
    if (limit.bytes && rounded >= COUNTED_BYTES && !mem_charge(rounded))
        return NULL;
    void *p = aligned_alloc(alignment, rounded);
    if (limit.bytes && rounded >= COUNTED_BYTES)
        mem_discharge(rounded);
    count(p, 1);
    if (p && bytes >= HUGE_PAGE)
        madvise(p, (bytes + HUGE_PAGE / 2) & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
    return p;
}

void *mem_try_grow(void *old, size_t kept, size_t bytes)
{
    void *grown = mem_try(bytes);
    if (!grown)
        return NULL;
    if (kept)
        memcpy(grown, old, kept);
    mem_free(old);
    return grown;
}

void mem_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

void mem_share_heap(void)
{
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 1);
#endif
}

void *mem_try_unaligned(size_t bytes)
{
    return malloc(bytes ? bytes : 1);
}
