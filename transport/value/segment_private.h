/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of segments share. Private to transport.
 */
#ifndef TF_TRANSPORT_SEGMENT_PRIVATE_H
#define TF_TRANSPORT_SEGMENT_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "base/vec.h"
#include "transport/value/extents.h"
#include "transport/value/segment.h"

#ifndef MADV_POPULATE_READ /* since Linux 5.14; headers of C libraries may be older */
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

#define SEGMENT_PAGE ((size_t)4096)
#define SEGMENTS_MAX 128 /* each takes a descriptor */

struct slot {           /* of a tensor in a segment */
    atomic_int readers; /* tensors there, and those that were shared and not mapped yet */
    atomic_uint pages;  /* that it has */
};

#define SEGMENT_SLOTS ((int)((SEGMENT_PAGE - sizeof(uint64_t)) / sizeof(struct slot)))

struct head { /* the memory's last page; the data comes first */
    uint64_t number;
    struct slot slots[(SEGMENT_PAGE - sizeof(uint64_t)) / sizeof(struct slot)];
};

_Static_assert(sizeof(struct head) <= SEGMENT_PAGE, "the counters fit into a page");

struct segment_span {
    size_t offset, bytes;
};

struct segment {
    atomic_int holders; /* the table, and each tensor of this process */
    struct head *head;
    void *data;
    size_t bytes; /* of data: whole pages, most of which have no memory */
    uint64_t number;
    int fd;
    pid_t pid; /* whose descriptor it is, as others find it */
    bool own;
    double used;
    struct extents extents;      /* of an own one, by slot; with the table's lock */
    atomic_int *tensors;         /* of this process, by slot */
    struct segment_span *mapped; /* of another's: by slot what was looked at last */
    atomic_size_t in_use;        /* of another's: bytes of tensors that count */
};

struct segments {
    struct outgoing_memory outgoing; /* first */
    struct mem_reclaimer reclaimer;
    atomic_bool has_reader;
    pthread_mutex_t lock;
    struct segment *all[SEGMENTS_MAX];
    int n;
    struct segment *own; /* the one that tensors are put into; NULL: none is there yet */
    size_t limit;
};

static inline size_t segment_whole_pages(size_t bytes)
{
    return (bytes + SEGMENT_PAGE - 1) / SEGMENT_PAGE * SEGMENT_PAGE;
}

static inline void *segment_data_at(const struct segment *segment, size_t offset)
{
    return (char *)segment->data + offset;
}

/* Returns whether so many bytes that are mapped are of another's memory, and stay. */
static inline bool segment_counts(const struct segment *segment, size_t bytes)
{
    return !segment->own && bytes >= SEGMENT_LEAST_BYTES;
}

static inline atomic_int *segment_readers(const struct segment *segment, int slot)
{
    return &segment->head->slots[slot].readers;
}

/* ---- one segment (segment_map.c) ---- */

/* Makes a segment of so much address space, an even number of pages, or less if no more is allowed.
 * NULL: the system gives none. */
struct segment *segment_make(size_t bytes);
/* NULL: it is not there, or not for this process. */
struct segment *segment_open(const struct segment_offer *offer);
void segment_drop(struct segment *segment); /* a hold; the last one unmaps it */

/* Gives the span memory. False: the system has none. */
bool segment_commit(const struct segment *segment, struct segment_span span);
void segment_uncommit(const struct segment *segment, struct segment_span span);

/* The caller's hold of the segment, and the slot's count, become the buffer's. */
struct buffer *segment_buffer(struct segment *segment, int slot, struct segment_span span);

/* ---- the table, with its lock (segment.c) ---- */

struct segment *segment_hold(struct segment *segment);
/* Held for the caller; the table has it as well. False: there is no place. */
bool segments_add(struct segments *segments, struct segment *segment);

/* ---- memory for tensors (segment_room.c) ---- */

/* NULL: the limit is reached, or the system has none. Without the lock. */
struct buffer *segments_take(struct segments *segments, size_t bytes);

/* The others with the lock. Gives what is kept to the system, but for what lies in `but`, the one
 * first that was not used for longest, until there is room for `fresh` bytes. */
bool segments_make_room(struct segments *segments, size_t fresh, struct segment_span but);
/* Memory that nobody reads any more is kept. */
void segment_collect(struct segment *segment);
/* The memory of extent i. */
void segment_give_to_system(struct segment *segment, size_t i);

#endif
