/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/value/segment.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/time.h"
#include "transport/channel/memfd.h"
#include "transport/loop/loop.h"

#define PAGE ((size_t)4096)
#define LIMIT_BYTES ((size_t)4 << 30)
#define SEGMENTS_MAX 128 /* each takes a descriptor */

struct head { /* the memory's last page; the data comes first */
    uint64_t number;
    atomic_int readers; /* tensors in it, and those that were shared and not mapped yet */
};

struct segment {
    atomic_int holders; /* the table, and each tensor of this process */
    struct head *head;
    void *data;
    size_t bytes; /* of data: whole pages */
    uint64_t number;
    int fd;
    bool own;
    double used;
};

struct segments {
    struct outgoing outgoing; /* first */
    struct mem_keeper keeper;
    atomic_bool has_reader;
    pthread_mutex_t lock;
    struct segment *all[SEGMENTS_MAX];
    int n;
    size_t bytes, limit;
};

struct held { /* what a tensor has */
    struct buffer buffer;
    struct segment *segment;
};

/* ---- one segment ---- */

static void segment_drop(struct segment *segment)
{
    if (atomic_fetch_sub(&segment->holders, 1) > 1)
        return;
    munmap(segment->data, segment->bytes);
    if (segment->own)
        mem_discharge(segment->bytes);
    munmap(segment->head, PAGE);
    close(segment->fd);
    mem_free(segment);
}

/* Takes the descriptor over, in any case. Pages are mapped at once, which takes a third of the time
 * of as many faults. */
static struct segment *segment_map(int fd, size_t bytes, bool own)
{
    int access = own ? PROT_READ | PROT_WRITE : PROT_READ;
    void *data = mmap(NULL, bytes, access, MAP_SHARED | MAP_POPULATE, fd, 0);
    void *head = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)bytes);
    if (data == MAP_FAILED || head == MAP_FAILED) {
        if (data != MAP_FAILED)
            munmap(data, bytes);
        if (head != MAP_FAILED)
            munmap(head, PAGE);
        close(fd);
        return NULL;
    }
    struct segment *segment = mem_alloc(sizeof *segment);
    *segment = (struct segment){.head = head, .data = data, .bytes = bytes, .fd = fd, .own = own};
    atomic_init(&segment->holders, 1);
    segment->number = segment->head->number;
    return segment;
}

/* The pages are there before anybody writes: a lack of memory is known here. */
static struct segment *segment_make(size_t bytes)
{
    uint64_t number;
    int fd = memfd_new("tf-tensor", bytes + PAGE);
    if (fd < 0)
        return NULL;
    if (fallocate(fd, 0, 0, (off_t)(bytes + PAGE)) ||
        getrandom(&number, sizeof number, 0) != sizeof number ||
        pwrite(fd, &number, sizeof number, (off_t)bytes) != sizeof number) {
        close(fd);
        return NULL;
    }
    return segment_map(fd, bytes, true);
}

static struct segment *segment_open(const struct shared_offer *offer)
{
    size_t bytes;
    int fd = memfd_open(offer->pid, offer->fd, &bytes);
    if (fd < 0)
        return NULL;
    if (bytes <= PAGE || bytes % PAGE) {
        close(fd);
        return NULL;
    }
    struct segment *segment = segment_map(fd, bytes - PAGE, false);
    if (!segment || segment->number == offer->number)
        return segment;
    segment_drop(segment);
    return NULL;
}

static void give_back(struct buffer *buffer)
{
    struct segment *segment = ((struct held *)buffer)->segment; /* its first member */
    atomic_fetch_sub_explicit(&segment->head->readers, 1, memory_order_release);
    segment_drop(segment);
    mem_free(buffer);
}

/* The caller's hold of the segment, and its count, become the buffer's. */
static struct buffer *buffer_in(struct segment *segment)
{
    struct held *held = mem_alloc(sizeof *held);
    held->buffer = (struct buffer){
        .bytes = segment->bytes, .data = segment->data, .free = give_back, .owner = segment};
    atomic_init(&held->buffer.holders, 1);
    held->segment = segment;
    return &held->buffer;
}

static struct tensor tensor_in(struct buffer *buffer, enum dtype type, const struct shape *shape)
{
    return (struct tensor){type, *shape, buffer->data, buffer, NULL};
}

/* ---- the table: with the lock ---- */

static bool is_free(const struct segment *segment)
{
    return atomic_load_explicit(&segment->head->readers, memory_order_acquire) == 0;
}

static bool is_idle(const struct segment *segment)
{
    return atomic_load(&segment->holders) == 1 && (!segment->own || is_free(segment));
}

static struct segment *hold(struct segment *segment)
{
    atomic_fetch_add(&segment->holders, 1);
    segment->used = time_now();
    return segment;
}

static void forget(struct segments *segments, int i)
{
    struct segment *segment = segments->all[i];
    segments->bytes -= segment->bytes;
    segments->all[i] = segments->all[--segments->n];
    segment_drop(segment);
}

/* Forgets those that nobody has, the ones first that were not used for longest. */
static bool make_room(struct segments *segments, size_t bytes)
{
    while (segments->n == SEGMENTS_MAX || bytes > segments->limit - segments->bytes) {
        int oldest = -1;
        for (int i = 0; i < segments->n; i++)
            if (is_idle(segments->all[i]) &&
                (oldest < 0 || segments->all[i]->used < segments->all[oldest]->used))
                oldest = i;
        if (oldest < 0)
            return false;
        forget(segments, oldest);
    }
    return true;
}

/* Held for the caller; the table has it as well. False: there is no room. */
static bool add(struct segments *segments, struct segment *segment)
{
    if (!make_room(segments, segment->bytes))
        return false;
    segments->all[segments->n++] = hold(segment);
    segments->bytes += segment->bytes;
    return true;
}

/* One that nobody has and that is not much larger than asked for. */
static struct segment *find_free(struct segments *segments, size_t bytes)
{
    for (int i = 0; i < segments->n; i++) {
        struct segment *segment = segments->all[i];
        if (segment->own && segment->bytes >= bytes && segment->bytes - bytes <= bytes / 4 &&
            is_free(segment))
            return segment;
    }
    return NULL;
}

static struct segment *find_number(struct segments *segments, uint64_t number)
{
    for (int i = 0; i < segments->n; i++)
        if (segments->all[i]->number == number)
            return segments->all[i];
    return NULL;
}

/* ---- memory of a segment ---- */

/* One that is free is made one that has a reader. */
static struct segment *take_free(struct segments *segments, size_t bytes, bool *room)
{
    pthread_mutex_lock(&segments->lock);
    struct segment *segment = find_free(segments, bytes);
    if (segment)
        atomic_store_explicit(&hold(segment)->head->readers, 1, memory_order_relaxed);
    *room = segment || make_room(segments, bytes);
    pthread_mutex_unlock(&segments->lock);
    return segment;
}

/* Without the lock for as long as the system clears the pages. */
static struct segment *make_another(struct segments *segments, size_t bytes)
{
    if (!mem_charge(bytes))
        return NULL;
    struct segment *segment = segment_make(bytes);
    if (!segment) {
        mem_discharge(bytes);
        return NULL;
    }
    atomic_store_explicit(&segment->head->readers, 1, memory_order_relaxed);
    pthread_mutex_lock(&segments->lock);
    bool added = add(segments, segment);
    pthread_mutex_unlock(&segments->lock);
    if (added)
        return segment;
    segment_drop(segment);
    return NULL;
}

static struct buffer *alloc(struct segments *segments, size_t bytes)
{
    size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
    bool room;
    struct segment *segment = take_free(segments, whole, &room);
    if (!segment && room)
        segment = make_another(segments, whole);
    return segment ? buffer_in(segment) : NULL;
}

/* ---- the interface ---- */

static struct buffer *alloc_outgoing(struct outgoing *outgoing, enum dtype type, size_t bytes)
{
    struct segments *segments = (struct segments *)outgoing;
    bool suits = atomic_load_explicit(&segments->has_reader, memory_order_relaxed) &&
                 segment_suits(type, bytes);
    return suits ? alloc(segments, bytes) : NULL;
}

static bool copies_to_lend(struct outgoing *outgoing, const struct tensor *value)
{
    const struct segments *segments = (struct segments *)outgoing;
    return atomic_load_explicit(&segments->has_reader, memory_order_relaxed) && !value->layout &&
           segment_suits(value->type, tensor_bytes(value)) && !segment_has(value);
}

static bool is_read(const struct tensor *value)
{
    return segment_has(value) && !segment_is_own(value);
}

static void relieve(struct mem_keeper *keeper)
{
    segments_trim((struct segments *)((char *)keeper - offsetof(struct segments, keeper)), 0);
}

struct segments *segments_new(size_t limit)
{
    struct segments *segments = mem_alloc(sizeof *segments);
    segments->keeper.give_back = relieve;
    mem_keeper_add(&segments->keeper);
    segments->outgoing = (struct outgoing){alloc_outgoing, copies_to_lend, is_read};
    pthread_mutex_init(&segments->lock, NULL);
    segments->limit = limit ? limit : LIMIT_BYTES;
    return segments;
}

void segments_free(struct segments *segments)
{
    if (!segments)
        return;
    mem_keeper_remove(&segments->keeper);
    while (segments->n)
        forget(segments, segments->n - 1);
    pthread_mutex_destroy(&segments->lock);
    mem_free(segments);
}

bool segment_suits(enum dtype type, size_t bytes)
{
    return (DTYPES_NUMERIC & DTYPE_BIT(type)) && bytes >= SEGMENT_LEAST_BYTES &&
           bytes <= (size_t)TENSOR_BYTES_MAX;
}

bool segments_alloc(struct segments *segments, struct tensor *t, enum dtype type,
                    const struct shape *shape)
{
    struct buffer *buffer = alloc(segments, (size_t)shape_bytes(shape, type));
    if (buffer)
        *t = tensor_in(buffer, type, shape);
    return buffer != NULL;
}

struct outgoing *segments_outgoing(struct segments *segments)
{
    return &segments->outgoing;
}

void segments_have_reader(struct segments *segments)
{
    atomic_store_explicit(&segments->has_reader, true, memory_order_relaxed);
}

static struct segment *segment_of(const struct tensor *t)
{
    bool has = t->buffer && t->buffer->free == give_back && t->data == t->buffer->data;
    return has ? ((struct held *)t->buffer)->segment : NULL;
}

bool segment_has(const struct tensor *t)
{
    return segment_of(t) != NULL;
}

bool segment_is_own(const struct tensor *t)
{
    struct segment *segment = segment_of(t);
    return segment && segment->own && atomic_load(&segment->head->readers) == 1;
}

struct shared_offer segment_share(const struct tensor *t)
{
    struct segment *segment = segment_of(t);
    atomic_fetch_add(&segment->head->readers, 1);
    return (struct shared_offer){getpid(), segment->fd, segment->number};
}

void segment_take_back(const struct tensor *t)
{
    atomic_fetch_sub_explicit(&segment_of(t)->head->readers, 1, memory_order_release);
}

enum segment_answer segments_map(struct segments *segments, const struct shared_offer *offer,
                                 enum dtype type, const struct shape *shape, struct tensor *t)
{
    int64_t bytes = shape_bytes(shape, type);
    enum segment_answer answer = SEGMENT_TAKEN;
    pthread_mutex_lock(&segments->lock);
    struct segment *segment = find_number(segments, offer->number);
    if (segment)
        hold(segment);
    else if (!(segment = segment_open(offer)))
        answer = SEGMENT_NOT_THERE;
    else if (!add(segments, segment))
        answer = SEGMENT_FULL;
    pthread_mutex_unlock(&segments->lock);
    if (segment && answer == SEGMENT_TAKEN && (bytes < 0 || (size_t)bytes > segment->bytes))
        answer = SEGMENT_NOT_THERE;
    if (answer == SEGMENT_TAKEN)
        *t = tensor_in(buffer_in(segment), type, shape);
    else if (segment)
        segment_drop(segment);
    return answer;
}

void segments_trim(struct segments *segments, double seconds)
{
    double now = time_now();
    pthread_mutex_lock(&segments->lock);
    for (int i = segments->n - 1; i >= 0; i--) {
        struct segment *segment = segments->all[i];
        if (atomic_load(&segment->holders) > 1)
            segment->used = now;
        else if (segment->used < now - seconds)
            forget(segments, i);
    }
    pthread_mutex_unlock(&segments->lock);
}
