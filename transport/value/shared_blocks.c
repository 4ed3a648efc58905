/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/value/shared_blocks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/memory.h"
#include "transport/channel/memfd.h"

#define DATA_OFFSET ((size_t)4096)
#define MEMORY_BYTES (DATA_OFFSET + SHARED_BLOCKS * SHARED_BLOCK_BYTES)

struct shared_memory { /* the memory */
    uint64_t number;
    atomic_int readers[SHARED_BLOCKS]; /* that have not given it back; 0: free */
};

_Static_assert(sizeof(struct shared_memory) <= DATA_OFFSET, "the counters fit before the blocks");

struct shared_blocks {
    struct mem_keeper keeper; /* first */
    struct shared_memory *memory;
    int fd;
    pthread_mutex_t lock; /* of those who look for a free block */
    int n_used;           /* the blocks before this one may have pages */
};

struct shared_view {
    struct shared_memory *memory;
};

static void *block_at(struct shared_memory *memory, size_t block)
{
    return (char *)memory + DATA_OFFSET + block * SHARED_BLOCK_BYTES;
}

static struct shared_memory *map(int fd)
{
    void *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, MEMORY_BYTES, MADV_HUGEPAGE); /* where the system has them for shared memory */
    return memory;
}

/* ---- offers ---- */

void shared_offer_pack(msgpack_packer *packer, const struct shared_offer *offer)
{
    pack_key_int(packer, "pid", offer->pid);
    pack_key_int(packer, "fd", offer->fd);
    pack_key_uint(packer, "number", offer->number);
}

bool shared_offer_read(const msgpack_object *header, struct shared_offer *offer)
{
    return record_get_int(header, "pid", &offer->pid) && record_get_int(header, "fd", &offer->fd) &&
           record_get_uint(header, "number", &offer->number);
}

/* ---- sharing ---- */

void shared_blocks_trim(struct shared_blocks *shared)
{
    pthread_mutex_lock(&shared->lock);
    for (int i = 0; i < shared->n_used; i++)
        if (atomic_load_explicit(&shared->memory->readers[i], memory_order_acquire) == 0)
            madvise(block_at(shared->memory, (size_t)i), SHARED_BLOCK_BYTES, MADV_REMOVE);
    pthread_mutex_unlock(&shared->lock);
}

static void free_blocks(struct mem_keeper *keeper)
{
    shared_blocks_trim((struct shared_blocks *)keeper);
}

struct shared_blocks *shared_blocks_new(void)
{
    int fd = memfd_new("tf-share", MEMORY_BYTES);
    struct shared_memory *memory = fd < 0 ? NULL : map(fd);
    uint64_t number;
    if (!memory || getrandom(&number, sizeof number, 0) != sizeof number) {
        if (memory)
            munmap(memory, MEMORY_BYTES);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    struct shared_blocks *shared = mem_alloc(sizeof *shared);
    *shared = (struct shared_blocks){.keeper.give_back = free_blocks, .memory = memory, .fd = fd};
    pthread_mutex_init(&shared->lock, NULL);
    memory->number = number;
    mem_keeper_add(&shared->keeper);
    return shared;
}

void shared_blocks_free(struct shared_blocks *shared)
{
    if (!shared)
        return;
    mem_keeper_remove(&shared->keeper);
    munmap(shared->memory, MEMORY_BYTES);
    close(shared->fd);
    pthread_mutex_destroy(&shared->lock);
    mem_free(shared);
}

struct shared_offer shared_blocks_offer(const struct shared_blocks *shared)
{
    return (struct shared_offer){getpid(), shared->fd, shared->memory->number};
}

int shared_blocks_grant(struct shared_blocks *shared, int most, int readers, void **data)
{
    int found = -1;
    pthread_mutex_lock(&shared->lock);
    for (int i = 0; i < most && found < 0; i++) /* the first ones have pages by now */
        if (atomic_load_explicit(&shared->memory->readers[i], memory_order_acquire) == 0)
            found = i;
    if (found >= 0) {
        atomic_store(&shared->memory->readers[found], readers);
        shared->n_used = found >= shared->n_used ? found + 1 : shared->n_used;
        *data = block_at(shared->memory, (size_t)found);
    }
    pthread_mutex_unlock(&shared->lock);
    return found;
}

/* ---- mapping ---- */

struct shared_view *shared_view_new(const struct shared_offer *offer)
{
    size_t bytes;
    int fd = memfd_open(offer->pid, offer->fd, &bytes);
    struct shared_memory *memory = fd >= 0 && bytes == MEMORY_BYTES ? map(fd) : NULL;
    if (fd >= 0)
        close(fd);
    if (!memory || memory->number != offer->number) {
        if (memory)
            munmap(memory, MEMORY_BYTES);
        return NULL;
    }
    struct shared_view *view = mem_alloc(sizeof *view);
    view->memory = memory;
    return view;
}

void shared_view_free(struct shared_view *view)
{
    if (!view)
        return;
    munmap(view->memory, MEMORY_BYTES);
    mem_free(view);
}

void *shared_view_block(const struct shared_view *view, uint64_t block)
{
    return block < SHARED_BLOCKS ? block_at(view->memory, (size_t)block) : NULL;
}

void shared_view_return(struct shared_view *view, uint64_t block)
{
    if (block < SHARED_BLOCKS)
        atomic_fetch_sub_explicit(&view->memory->readers[block], 1, memory_order_release);
}
