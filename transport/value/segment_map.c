/* SPDX-License-Identifier: Apache-2.0
 *
 * One segment, as it is mapped, and tensors in it.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "transport/channel/memfd.h"
#include "transport/value/segment_private.h"

struct segment_hold { /* what a tensor has */
    struct buffer buffer;
    struct segment *segment;
    int slot;
};

void segment_drop(struct segment *segment)
{
    if (atomic_fetch_sub(&segment->holders, 1) > 1)
        return;
    munmap(segment->data, segment->bytes);
    if (segment->own)
        mem_discharge(extents_bytes(&segment->extents));
    munmap(segment->head, SEGMENT_PAGE);
    close(segment->fd);
    extents_release(&segment->extents);
    mem_free(segment->tensors);
    mem_free(segment->mapped);
    mem_free(segment);
}

/* Takes the descriptor over, in any case. */
static struct segment *segment_map(int fd, size_t bytes, bool own)
{
    int access = own ? PROT_READ | PROT_WRITE : PROT_READ;
    void *data = mmap(NULL, bytes, access, MAP_SHARED | MAP_NORESERVE, fd, 0);
    void *head = mmap(NULL, SEGMENT_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)bytes);
    if (data == MAP_FAILED || head == MAP_FAILED) {
        if (data != MAP_FAILED)
            munmap(data, bytes);
        if (head != MAP_FAILED)
            munmap(head, SEGMENT_PAGE);
        close(fd);
        return NULL;
    }
    madvise(data, bytes, MADV_DONTDUMP); /* it would get memory everywhere */
    struct segment *segment = mem_alloc(sizeof *segment);
    *segment = (struct segment){
        .head = head, .data = data, .bytes = bytes, .fd = fd, .pid = getpid(), .own = own};
    atomic_init(&segment->holders, 1);
    segment->tensors = mem_array((size_t)SEGMENT_SLOTS, sizeof *segment->tensors);
    segment->mapped = mem_array((size_t)SEGMENT_SLOTS, sizeof *segment->mapped);
    segment->number = segment->head->number;
    return segment;
}

struct segment *segment_make(size_t bytes)
{
    uint64_t number;
    /* The limit of a file's size, which address space without memory counts for, too. */
    struct rlimit limit;
    size_t allowed = bytes + 2 * SEGMENT_PAGE;
    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur < allowed)
        allowed = (size_t)limit.rlim_cur / (2 * SEGMENT_PAGE) * (2 * SEGMENT_PAGE);
    if (allowed <= 2 * SEGMENT_PAGE)
        return NULL;
    bytes = allowed - 2 * SEGMENT_PAGE;
    int fd = memfd_new("tf-tensor", bytes + SEGMENT_PAGE);
    if (fd < 0)
        return NULL;
    if (getrandom(&number, sizeof number, 0) != sizeof number ||
        pwrite(fd, &number, sizeof number, (off_t)bytes) != sizeof number) {
        close(fd);
        return NULL;
    }
    return segment_map(fd, bytes, true);
}

struct segment *segment_open(const struct segment_offer *offer)
{
    size_t bytes;
    int fd = memfd_open((int64_t)offer->pid, (int64_t)offer->fd, &bytes);
    if (fd < 0)
        return NULL;
    if (bytes <= SEGMENT_PAGE || bytes % SEGMENT_PAGE) {
        close(fd);
        return NULL;
    }
    struct segment *segment = segment_map(fd, bytes - SEGMENT_PAGE, false);
    if (!segment || segment->number == offer->number)
        return segment;
    segment_drop(segment);
    return NULL;
}

/* The pages are there before anybody writes: a lack of memory is known here. They are mapped at
 * once, which takes a third of the time of as many faults. */
bool segment_commit(const struct segment *segment, struct segment_span span)
{
    if (fallocate(segment->fd, 0, (off_t)span.offset, (off_t)span.bytes))
        return false;
    madvise(segment_data_at(segment, span.offset), span.bytes, MADV_POPULATE_WRITE);
    return true;
}

void segment_uncommit(const struct segment *segment, struct segment_span span)
{
    fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)span.offset,
              (off_t)span.bytes);
}

static void return_segment(struct buffer *buffer)
{
    const struct segment_hold *held = (struct segment_hold *)buffer; /* its first member */
    struct segment *segment = held->segment;
    if (segment_counts(segment, buffer->bytes))
        atomic_fetch_sub(&segment->in_use, buffer->bytes);
    atomic_fetch_sub(&segment->tensors[held->slot], 1);
    atomic_fetch_sub_explicit(segment_readers(segment, held->slot), 1, memory_order_release);
    segment_drop(segment);
    mem_free(buffer);
}

static bool is_of_process(const struct segment_hold *held)
{
    return held->segment->own && atomic_load(segment_readers(held->segment, held->slot)) == 1;
}

static bool is_read(const struct buffer *buffer)
{
    return !is_of_process((const struct segment_hold *)buffer);
}

struct buffer *segment_buffer(struct segment *segment, int slot, struct segment_span span)
{
    struct segment_hold *held = mem_alloc(sizeof *held);
    held->buffer = (struct buffer){.bytes = span.bytes,
                                   .data = segment_data_at(segment, span.offset),
                                   .free = return_segment,
                                   .owner = segment,
                                   .is_read = is_read};
    atomic_init(&held->buffer.holders, 1);
    held->segment = segment;
    held->slot = slot;
    atomic_fetch_add(&segment->tensors[slot], 1);
    return &held->buffer;
}

bool segment_has_part(const struct tensor *t)
{
    return t->buffer && t->buffer->free == return_segment;
}

bool segment_has(const struct tensor *t)
{
    return segment_has_part(t) && t->data == t->buffer->data;
}

bool segment_is_own(const struct tensor *t)
{
    return segment_has(t) && is_of_process((const struct segment_hold *)t->buffer);
}

struct segment_offer segment_share(const struct tensor *t)
{
    const struct segment_hold *held = (const struct segment_hold *)t->buffer;
    const struct segment *segment = held->segment;
    atomic_fetch_add(segment_readers(segment, held->slot), 1);
    return (struct segment_offer){.pid = (uint64_t)segment->pid,
                                  .fd = (uint64_t)segment->fd,
                                  .number = segment->number,
                                  .slot = (uint64_t)held->slot,
                                  .offset = (uint64_t)((char *)t->data - (char *)segment->data),
                                  .bytes = tensor_bytes(t)};
}

void segment_take_back(const struct tensor *t)
{
    const struct segment_hold *held = (const struct segment_hold *)t->buffer;
    atomic_fetch_sub_explicit(segment_readers(held->segment, held->slot), 1, memory_order_release);
}
