/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/device/pool.h"

#include <pthread.h>

#include "base/guard.h"
#include "base/memory.h"

#define N_CLASSES 4 * 48 /* four sizes per power of two */

/* A larger buffer first gets exactly the requested size, as most plans request the same sizes in
 * each step. */
#define EXACT_BYTES ((size_t)1 << 20)

struct pool_buffer {
    struct buffer buffer;  /* handed out */
    struct buffer *memory; /* of the device */
    struct pool_buffer *next;
    size_t capacity;
    int size_class;
};

struct pool {
    struct mem_reclaimer reclaimer; /* first */
    struct device *device;
    bool on_device;
    bool is_host;         /* its memory is the host's */
    pthread_mutex_t lock; /* guards the members below */
    struct pool_buffer *idle[N_CLASSES];
    size_t n_out; /* buffers that are held */
    bool trimmed; /* nothing was taken since: returned buffers are freed */
    bool closed;
};

/* Lets an idle buffer be touched again. */
static void unguard(const struct pool *pool, const struct pool_buffer *p)
{
    if (pool->is_host)
        unguard_memory(p->memory->data, p->memory->bytes);
}

static void free_one(const struct pool *pool, struct pool_buffer *p)
{
    unguard(pool, p);
    p->memory->free(p->memory);
    mem_free(p);
}

static void free_idle(struct pool *pool)
{
    for (int i = 0; i < N_CLASSES; i++) {
        for (struct pool_buffer *p = pool->idle[i], *next; p; p = next) {
            next = p->next;
            free_one(pool, p);
        }
        pool->idle[i] = NULL;
    }
}

void pool_trim(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    free_idle(pool);
    pool->trimmed = true;
    pthread_mutex_unlock(&pool->lock);
}

static void trim_pool(struct mem_reclaimer *reclaimer)
{
    pool_trim((struct pool *)reclaimer);
}

struct pool *pool_new(struct device *device, bool on_device)
{
    struct pool *pool = mem_alloc(sizeof *pool);
    pool->device = device;
    pool->on_device = on_device;
    pool->is_host = device->is_host || !on_device;
    pthread_mutex_init(&pool->lock, NULL);
    pool->reclaimer.give_back = trim_pool;
    mem_reclaimer_add(&pool->reclaimer);
    return pool;
}

static void destroy(struct pool *pool)
{
    pthread_mutex_destroy(&pool->lock);
    mem_free(pool);
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    mem_reclaimer_remove(&pool->reclaimer);
    pthread_mutex_lock(&pool->lock);
    free_idle(pool);
    pool->closed = true;
    bool last = !pool->n_out;
    pthread_mutex_unlock(&pool->lock);
    if (last)
        destroy(pool);
}

/* The smallest class that holds `bytes`, and its size: (4..7) * 2^k. */
static int size_class(size_t bytes, size_t *rounded)
{
    if (bytes <= 64) {
        *rounded = 64;
        return 0;
    }
    int shift = 63 - __builtin_clzll((unsigned long long)bytes - 1) - 2;
    size_t quarter = ((bytes - 1) >> shift) + 1; /* 5..8 */
    *rounded = quarter << shift;
    return (shift - 4) * 4 + (int)quarter - 4;
}

static void return_block(struct buffer *buffer)
{
    struct pool_buffer *p = (struct pool_buffer *)buffer;
    struct pool *pool = buffer->owner;
    pthread_mutex_lock(&pool->lock);
    if (pool->closed || pool->trimmed) {
        free_one(pool, p);
    } else {
        if (pool->is_host)
            guard_memory(p->memory->data, p->memory->bytes);
        p->next = pool->idle[p->size_class];
        pool->idle[p->size_class] = p;
    }
    bool last = !--pool->n_out && pool->closed;
    pthread_mutex_unlock(&pool->lock);
    if (last)
        destroy(pool);
}

static struct pool_buffer *take_off(struct pool_buffer **at)
{
    struct pool_buffer *p = *at;
    if (p)
        *at = p->next;
    return p;
}

/* Returns the link to the first idle buffer of the class that is large enough, or the last link. */
static struct pool_buffer **find_idle(struct pool *pool, int class, size_t bytes)
{
    struct pool_buffer **at = &pool->idle[class];
    while (*at && (*at)->capacity < bytes)
        at = &(*at)->next;
    return at;
}

bool pool_has(struct pool *pool, size_t bytes)
{
    size_t rounded;
    int class = size_class(bytes, &rounded);
    pthread_mutex_lock(&pool->lock);
    bool has = class < N_CLASSES && *find_idle(pool, class, bytes);
    pthread_mutex_unlock(&pool->lock);
    return has;
}

struct buffer *pool_alloc(struct pool *pool, size_t bytes)
{
    size_t rounded;
    int class = size_class(bytes, &rounded);
    if (class >= N_CLASSES)
        return NULL;
    pthread_mutex_lock(&pool->lock);
    struct pool_buffer *p = take_off(find_idle(pool, class, bytes));
    /* A buffer that is too small is replaced by one of the class's full size. */
    struct pool_buffer *smaller = p ? NULL : take_off(&pool->idle[class]);
    pool->n_out++;
    pool->trimmed = false;
    pthread_mutex_unlock(&pool->lock);
    bool is_exact = !smaller && bytes >= EXACT_BYTES;
    if (smaller)
        free_one(pool, smaller);
    if (p) {
        unguard(pool, p);
    } else {
        size_t capacity = is_exact ? bytes : rounded;
        struct buffer *memory = pool->on_device ? device_alloc(pool->device, capacity)
                                                : device_alloc_host(pool->device, capacity);
        if (!memory) {
            pthread_mutex_lock(&pool->lock);
            pool->n_out--;
            pthread_mutex_unlock(&pool->lock);
            return NULL;
        }
        p = mem_alloc(sizeof *p);
        p->memory = memory;
        p->capacity = capacity;
        p->size_class = class;
    }
    atomic_init(&p->buffer.holders, 1);
    p->buffer.bytes = bytes;
    p->buffer.data = p->memory->data;
    p->buffer.free = return_block;
    p->buffer.owner = pool;
    return &p->buffer;
}
