/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/link/buffer_pool.h"

#include <pthread.h>

#include "base/memory.h"
#include "base/time.h"
#include "exec/device/pinned.h"

#define LEAST_BYTES ((size_t)64 << 10) /* smaller blocks are reused by the allocator itself */

struct recycled_block {
    struct buffer buffer;
    size_t capacity;
    double freed; /* when it was returned */
    struct recycled_block *next;
};

struct buffer_pool {
    struct mem_reclaimer reclaimer; /* first */
    pthread_mutex_t lock;
    struct recycled_block *kept; /* the newest first */
    size_t bytes, limit;
    size_t holders; /* the owner, and every block in use */
};

/* Cuts the list at the first block that exceeds a limit; later blocks are older still. */
static struct recycled_block *cut(struct buffer_pool *buffer_pool, size_t limit, double oldest)
{
    size_t bytes = 0;
    struct recycled_block **at = &buffer_pool->kept;
    while (*at && (*at)->freed >= oldest && bytes + (*at)->capacity <= limit) {
        bytes += (*at)->capacity;
        at = &(*at)->next;
    }
    struct recycled_block *rest = *at;
    *at = NULL;
    buffer_pool->bytes = bytes;
    return rest;
}

static void free_blocks(struct recycled_block *block)
{
    while (block) {
        struct recycled_block *next = block->next;
        pinned_remove(block->buffer.data);
        mem_free(block->buffer.data);
        mem_free(block);
        block = next;
    }
}

static void free_recycled(struct mem_reclaimer *reclaimer)
{
    buffer_pool_trim((struct buffer_pool *)reclaimer, 0);
}

struct buffer_pool *buffer_pool_new(size_t limit)
{
    struct buffer_pool *buffer_pool = mem_alloc(sizeof *buffer_pool);
    pthread_mutex_init(&buffer_pool->lock, NULL);
    buffer_pool->limit = limit;
    buffer_pool->holders = 1;
    buffer_pool->reclaimer.give_back = free_recycled;
    mem_reclaimer_add(&buffer_pool->reclaimer);
    return buffer_pool;
}

/* Drops a holder, and releases the lock. */
static void drop(struct buffer_pool *buffer_pool)
{
    bool last = !--buffer_pool->holders;
    pthread_mutex_unlock(&buffer_pool->lock);
    if (!last)
        return;
    free_blocks(buffer_pool->kept);
    pthread_mutex_destroy(&buffer_pool->lock);
    mem_free(buffer_pool);
}

void buffer_pool_free(struct buffer_pool *buffer_pool)
{
    if (!buffer_pool)
        return;
    mem_reclaimer_remove(&buffer_pool->reclaimer);
    pthread_mutex_lock(&buffer_pool->lock);
    free_blocks(cut(buffer_pool, 0, 0));
    buffer_pool->limit = 0;
    drop(buffer_pool);
}

static void return_block(struct buffer *buffer)
{
    struct recycled_block *block = (struct recycled_block *)buffer; /* its first member */
    struct buffer_pool *buffer_pool = buffer->owner;
    pthread_mutex_lock(&buffer_pool->lock);
    block->freed = time_now();
    block->next = buffer_pool->kept;
    buffer_pool->kept = block;
    buffer_pool->bytes += block->capacity;
    struct recycled_block *rest = NULL;
    if (buffer_pool->bytes > buffer_pool->limit)
        rest = cut(buffer_pool, buffer_pool->limit, 0);
    drop(buffer_pool);
    free_blocks(rest);
}

/* Finds a block that is not much larger than requested. */
static struct recycled_block *take_block(struct buffer_pool *buffer_pool, size_t bytes)
{
    for (struct recycled_block **at = &buffer_pool->kept; *at; at = &(*at)->next) {
        struct recycled_block *block = *at;
        if (block->capacity >= bytes && block->capacity - bytes <= bytes / 4) {
            *at = block->next;
            buffer_pool->bytes -= block->capacity;
            return block;
        }
    }
    return NULL;
}

int buffer_pool_alloc(struct buffer_pool *buffer_pool, struct tensor *t, const struct tensor *like,
                      size_t bytes, struct error *err)
{
    if (bytes < LEAST_BYTES)
        return tensor_alloc(t, like->type, &like->shape, err);
    pthread_mutex_lock(&buffer_pool->lock);
    struct recycled_block *block = take_block(buffer_pool, bytes);
    buffer_pool->holders++;
    pthread_mutex_unlock(&buffer_pool->lock);
    if (!block) {
        void *data = mem_try(bytes);
        if (!data) {
            pthread_mutex_lock(&buffer_pool->lock);
            drop(buffer_pool);
            return error_set(err, ERR_OS, "no memory for tensor %s (%zu bytes)%s",
                             shape_text_typed(like->type, &like->shape), bytes, mem_limit_text());
        }
        block = mem_alloc(sizeof *block);
        block->capacity = bytes;
        block->buffer.data = data;
        pinned_add(data, bytes);
    }
    atomic_init(&block->buffer.holders, 1);
    block->buffer.bytes = bytes;
    block->buffer.free = return_block;
    block->buffer.owner = buffer_pool;
    *t = (struct tensor){like->type, like->shape, block->buffer.data, &block->buffer, NULL};
    return 0;
}

void buffer_pool_trim(struct buffer_pool *buffer_pool, double seconds)
{
    pthread_mutex_lock(&buffer_pool->lock);
    struct recycled_block *rest = cut(buffer_pool, buffer_pool->limit, time_now() - seconds);
    pthread_mutex_unlock(&buffer_pool->lock);
    free_blocks(rest);
}
