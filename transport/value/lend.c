/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/value/lend.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/memory.h"
#include "transport/channel/memfd.h"

#define DATA_OFFSET ((size_t)4096)
#define MEMORY_BYTES (DATA_OFFSET + LEND_BLOCKS * LEND_BYTES)

struct lent { /* the memory */
    uint64_t number;
    atomic_int readers[LEND_BLOCKS]; /* that have not given it back; 0: free */
};

_Static_assert(sizeof(struct lent) <= DATA_OFFSET, "the counters fit before the blocks");

struct lender {
    struct lent *memory;
    int fd;
    pthread_mutex_t lock; /* of those who look for a free block */
};

struct borrower {
    struct lent *memory;
};

static void *block_at(struct lent *memory, size_t block)
{
    return (char *)memory + DATA_OFFSET + block * LEND_BYTES;
}

static struct lent *map(int fd)
{
    void *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, MEMORY_BYTES, MADV_HUGEPAGE); /* where the system has them for shared memory */
    return memory;
}

/* ---- offers ---- */

void lend_offer_pack(msgpack_packer *packer, const struct lend_offer *offer)
{
    pack_key(packer, "pid");
    msgpack_pack_int64(packer, offer->pid);
    pack_key(packer, "fd");
    msgpack_pack_int64(packer, offer->fd);
    pack_key(packer, "number");
    msgpack_pack_uint64(packer, offer->number);
}

bool lend_offer_read(const msgpack_object *header, struct lend_offer *offer)
{
    return record_get_int(header, "pid", &offer->pid) && record_get_int(header, "fd", &offer->fd) &&
           record_get_uint(header, "number", &offer->number);
}

/* ---- lending ---- */

struct lender *lender_new(void)
{
    int fd = memfd_new("tf-lend", MEMORY_BYTES);
    struct lent *memory = fd < 0 ? NULL : map(fd);
    uint64_t number;
    if (!memory || getrandom(&number, sizeof number, 0) != sizeof number) {
        if (memory)
            munmap(memory, MEMORY_BYTES);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    struct lender *lender = mem_alloc(sizeof *lender);
    *lender = (struct lender){.memory = memory, .fd = fd};
    pthread_mutex_init(&lender->lock, NULL);
    memory->number = number;
    return lender;
}

void lender_free(struct lender *lender)
{
    if (!lender)
        return;
    munmap(lender->memory, MEMORY_BYTES);
    close(lender->fd);
    pthread_mutex_destroy(&lender->lock);
    mem_free(lender);
}

struct lend_offer lender_offer(const struct lender *lender)
{
    return (struct lend_offer){getpid(), lender->fd, lender->memory->number};
}

int lender_lend(struct lender *lender, int readers, void **data)
{
    int found = -1;
    pthread_mutex_lock(&lender->lock);
    for (int i = 0; i < LEND_BLOCKS && found < 0; i++) /* the first ones have pages by now */
        if (atomic_load_explicit(&lender->memory->readers[i], memory_order_acquire) == 0)
            found = i;
    if (found >= 0) {
        atomic_store(&lender->memory->readers[found], readers);
        *data = block_at(lender->memory, (size_t)found);
    }
    pthread_mutex_unlock(&lender->lock);
    return found;
}

/* ---- borrowing ---- */

struct borrower *borrower_new(const struct lend_offer *offer)
{
    size_t bytes;
    int fd = memfd_open(offer->pid, offer->fd, &bytes);
    struct lent *memory = fd >= 0 && bytes == MEMORY_BYTES ? map(fd) : NULL;
    if (fd >= 0)
        close(fd);
    if (!memory || memory->number != offer->number) {
        if (memory)
            munmap(memory, MEMORY_BYTES);
        return NULL;
    }
    struct borrower *borrower = mem_alloc(sizeof *borrower);
    borrower->memory = memory;
    return borrower;
}

void borrower_free(struct borrower *borrower)
{
    if (!borrower)
        return;
    munmap(borrower->memory, MEMORY_BYTES);
    mem_free(borrower);
}

void *borrower_block(const struct borrower *borrower, uint64_t block)
{
    return block < LEND_BLOCKS ? block_at(borrower->memory, (size_t)block) : NULL;
}

void borrower_return(struct borrower *borrower, uint64_t block)
{
    if (block < LEND_BLOCKS)
        atomic_fetch_sub_explicit(&borrower->memory->readers[block], 1, memory_order_release);
}
