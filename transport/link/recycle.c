/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/link/recycle.h"

#include <pthread.h>

#include "base/memory.h"
#include "base/time.h"
#include "exec/device/pinned.h"
#include "transport/loop/loop.h"

#define LEAST_BYTES ((size_t)64 << 10) /* smaller blocks are reused by the allocator itself */

struct recycled_block {
    struct buffer buffer;
    size_t capacity;
    double freed; /* when it was returned */
    struct recycled_block *next;
};

struct recycle {
    struct mem_keeper keeper; /* first */
    pthread_mutex_t lock;
    struct recycled_block *kept; /* the newest first */
    size_t bytes, limit;
    size_t holders; /* the owner, and every block in use */
};

/* Cuts the list at the first block that exceeds a limit; later blocks are older still. */
static struct recycled_block *cut(struct recycle *recycle, size_t limit, double oldest)
{
    size_t bytes = 0;
    struct recycled_block **at = &recycle->kept;
    while (*at && (*at)->freed >= oldest && bytes + (*at)->capacity <= limit) {
        bytes += (*at)->capacity;
        at = &(*at)->next;
    }
    struct recycled_block *rest = *at;
    *at = NULL;
    recycle->bytes = bytes;
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

static void free_recycled(struct mem_keeper *keeper)
{
    recycle_trim((struct recycle *)keeper, 0);
}

struct recycle *recycle_new(size_t limit)
{
    struct recycle *recycle = mem_alloc(sizeof *recycle);
    pthread_mutex_init(&recycle->lock, NULL);
    recycle->limit = limit;
    recycle->holders = 1;
    recycle->keeper.give_back = free_recycled;
    mem_keeper_add(&recycle->keeper);
    return recycle;
}

/* Drops a holder, and releases the lock. */
static void drop(struct recycle *recycle)
{
    bool last = !--recycle->holders;
    pthread_mutex_unlock(&recycle->lock);
    if (!last)
        return;
    free_blocks(recycle->kept);
    pthread_mutex_destroy(&recycle->lock);
    mem_free(recycle);
}

void recycle_free(struct recycle *recycle)
{
    if (!recycle)
        return;
    mem_keeper_remove(&recycle->keeper);
    pthread_mutex_lock(&recycle->lock);
    free_blocks(cut(recycle, 0, 0));
    recycle->limit = 0;
    drop(recycle);
}

static void return_block(struct buffer *buffer)
{
    struct recycled_block *block = (struct recycled_block *)buffer; /* its first member */
    struct recycle *recycle = buffer->owner;
    pthread_mutex_lock(&recycle->lock);
    block->freed = time_now();
    block->next = recycle->kept;
    recycle->kept = block;
    recycle->bytes += block->capacity;
    struct recycled_block *rest = NULL;
    if (recycle->bytes > recycle->limit)
        rest = cut(recycle, recycle->limit, 0);
    drop(recycle);
    free_blocks(rest);
}

/* Finds a block that is not much larger than requested. */
static struct recycled_block *take_block(struct recycle *recycle, size_t bytes)
{
    for (struct recycled_block **at = &recycle->kept; *at; at = &(*at)->next) {
        struct recycled_block *block = *at;
        if (block->capacity >= bytes && block->capacity - bytes <= bytes / 4) {
            *at = block->next;
            recycle->bytes -= block->capacity;
            return block;
        }
    }
    return NULL;
}

int recycle_alloc(struct recycle *recycle, struct tensor *t, const struct tensor *like,
                  size_t bytes, struct error *err)
{
    if (bytes < LEAST_BYTES)
        return tensor_alloc(t, like->type, &like->shape, err);
    pthread_mutex_lock(&recycle->lock);
    struct recycled_block *block = take_block(recycle, bytes);
    recycle->holders++;
    pthread_mutex_unlock(&recycle->lock);
    if (!block) {
        void *data = mem_try(bytes);
        if (!data) {
            pthread_mutex_lock(&recycle->lock);
            drop(recycle);
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
    block->buffer.owner = recycle;
    *t = (struct tensor){like->type, like->shape, block->buffer.data, &block->buffer, NULL};
    return 0;
}

void recycle_trim(struct recycle *recycle, double seconds)
{
    pthread_mutex_lock(&recycle->lock);
    struct recycled_block *rest = cut(recycle, recycle->limit, time_now() - seconds);
    pthread_mutex_unlock(&recycle->lock);
    free_blocks(rest);
}
