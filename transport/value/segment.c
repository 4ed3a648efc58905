/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/value/segment.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/time.h"
#include "base/vec.h"
#include "transport/channel/memfd.h"
#include "transport/value/extents.h"

#ifndef MADV_POPULATE_READ /* since Linux 5.14; the C library's headers may be older */
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

#define SEGMENT_PAGE ((size_t)4096)
#define SEGMENTS_MAX 128 /* each needs a file descriptor */
#define LIMIT_BYTES ((size_t)4 << 30)
#define LARGE_BYTES ((size_t)8 << 20)
#define CHUNKS_SHARE 32 /* the part of the limit that chunks may take */

struct slot {           /* of a tensor in a segment */
    atomic_int readers; /* tensors in all processes, and offers that were not mapped yet */
    atomic_uint pages;  /* of the tensor */
};

#define SEGMENT_SLOTS ((int)((SEGMENT_PAGE - sizeof(uint64_t)) / sizeof(struct slot)))

struct head { /* the last page of the memory, after the data */
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
    size_t bytes; /* of data: whole pages, most of them without memory */
    uint64_t number;
    int fd;
    pid_t pid; /* owner of the descriptor, by which others find it */
    bool own;
    double used;
    struct extents extents;      /* of an own segment, by slot; with the table's lock */
    atomic_int *tensors;         /* number of tensors of this process, by slot */
    struct segment_span *mapped; /* of another's segment: span mapped last, by slot */
    atomic_size_t in_use;        /* of another's segment: bytes of tensors that count for the
                                  * limit */
};

struct segments {
    struct outgoing_memory outgoing; /* first */
    struct mem_reclaimer reclaimer;
    atomic_bool has_reader;
    pthread_mutex_t lock;
    struct segment *all[SEGMENTS_MAX];
    int n;
    struct segment *own; /* allocates new tensors; NULL: none is there yet */
    size_t limit;
};

static size_t segment_whole_pages(size_t bytes)
{
    return (bytes + SEGMENT_PAGE - 1) / SEGMENT_PAGE * SEGMENT_PAGE;
}

static void *segment_data_at(const struct segment *segment, size_t offset)
{
    return (char *)segment->data + offset;
}

/* Returns whether a mapping of that size counts for the limit: large ones of another's segment
 * do. */
static bool segment_counts(const struct segment *segment, size_t bytes)
{
    return !segment->own && bytes >= SEGMENT_LEAST_BYTES;
}

static atomic_int *segment_readers(const struct segment *segment, int slot)
{
    return &segment->head->slots[slot].readers;
}

/* ---- one segment, as it is mapped, and tensors in it ---- */

struct segment_hold { /* the buffer of a tensor */
    struct buffer buffer;
    struct segment *segment;
    int slot;
};

/* Releases a hold; the last one unmaps the segment. */
static void segment_drop(struct segment *segment)
{
    if (atomic_fetch_sub(&segment->holders, 1) > 1)
        return;
    munmap(segment->data, segment->bytes);
    if (segment->own)
        mem_discharge(extents_bytes(&segment->extents));
    munmap(segment->head, SEGMENT_PAGE);
    close(segment->fd);
    vec_release(&segment->extents.all);
    mem_free(segment->tensors);
    mem_free(segment->mapped);
    mem_free(segment);
}

/* Takes ownership of the descriptor, also on failure. */
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
    madvise(data, bytes, MADV_DONTDUMP); /* a dump would give memory to all pages */
    struct segment *segment = mem_alloc(sizeof *segment);
    *segment = (struct segment){
        .head = head, .data = data, .bytes = bytes, .fd = fd, .pid = getpid(), .own = own};
    atomic_init(&segment->holders, 1);
    segment->tensors = mem_array((size_t)SEGMENT_SLOTS, sizeof *segment->tensors);
    segment->mapped = mem_array((size_t)SEGMENT_SLOTS, sizeof *segment->mapped);
    segment->number = segment->head->number;
    return segment;
}

/* Creates a segment of that much address space, an even number of pages, or less if the system
 * limits it. NULL: the system refuses. */
static struct segment *segment_make(size_t bytes)
{
    uint64_t number;
    /* Pages without memory count for the limit of a file's size, too. */
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

/* Returns NULL if the segment is not there, or not accessible. */
static struct segment *segment_open(const struct segment_offer *offer)
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

static void segment_uncommit(const struct segment *segment, struct segment_span span)
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

/* Passes the caller's hold of the segment, and its count of the slot, to the buffer. */
static struct buffer *segment_buffer(struct segment *segment, int slot, struct segment_span span)
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

/* ---- offers ---- */

#define OFFER_NUMBERS (sizeof(struct segment_offer) / sizeof(uint64_t))

void segment_offer_pack(msgpack_packer *packer, const struct segment_offer *offer)
{
    uint64_t numbers[OFFER_NUMBERS];
    memcpy(numbers, offer, sizeof numbers);
    pack_key_array(packer, "memory", OFFER_NUMBERS);
    for (size_t i = 0; i < OFFER_NUMBERS; i++)
        msgpack_pack_uint64(packer, numbers[i]);
}

bool segment_offer_read(const msgpack_object *header, struct segment_offer *offer)
{
    const msgpack_object *field = record_field(header, "memory");
    uint64_t numbers[OFFER_NUMBERS];
    bool good =
        field && field->type == MSGPACK_OBJECT_ARRAY && field->via.array.size == OFFER_NUMBERS;
    for (size_t i = 0; good && i < OFFER_NUMBERS; i++) {
        const msgpack_object *number = &field->via.array.ptr[i];
        good = number->type == MSGPACK_OBJECT_POSITIVE_INTEGER;
        numbers[i] = number->via.u64;
    }
    if (good)
        memcpy(offer, numbers, sizeof numbers);
    return good;
}

/* ---- the table: with the lock ---- */

static struct segment *hold_segment(struct segment *segment)
{
    atomic_fetch_add(&segment->holders, 1);
    segment->used = time_now();
    return segment;
}

static void segments_forget(struct segments *segments, int i)
{
    struct segment *segment = segments->all[i];
    if (segments->own == segment)
        segments->own = NULL;
    segments->all[i] = segments->all[--segments->n];
    segment_drop(segment);
}

/* Adds a segment, held for the caller and by the table. Returns false if there is no place. */
static bool segments_add(struct segments *segments, struct segment *segment)
{
    /* An unused segment of another process, least recently used first, makes place. */
    int oldest = -1;
    for (int i = 0; i < segments->n && segments->n == SEGMENTS_MAX; i++)
        if (!segments->all[i]->own && atomic_load(&segments->all[i]->holders) == 1 &&
            (oldest < 0 || segments->all[i]->used < segments->all[oldest]->used))
            oldest = i;
    if (oldest >= 0)
        segments_forget(segments, oldest);
    if (segments->n >= SEGMENTS_MAX)
        return false;
    segments->all[segments->n++] = hold_segment(segment);
    return true;
}

/* ---- room in the own segment: with the lock ---- */

static size_t segment_bytes(const struct segments *segments)
{
    size_t bytes = 0;
    for (int i = 0; i < segments->n; i++)
        bytes += segments->all[i]->own ? extents_bytes(&segments->all[i]->extents)
                                       : atomic_load(&segments->all[i]->in_use);
    return bytes;
}

/* Frees the memory of extent i. */
static void segment_give_to_system(struct segment *segment, size_t i)
{
    const struct memory_extent *extent = &segment->extents.all.items[i];
    segment_uncommit(segment, (struct segment_span){extent->offset, extent->bytes});
    mem_discharge(extent->bytes);
    extents_forget(&segment->extents, i);
}

/* Keeps memory that has no readers. */
static void segment_collect(struct segment *segment)
{
    vec_each(extent, &segment->extents.all)
        if (extent->user != EXTENT_KEPT &&
            atomic_load_explicit(segment_readers(segment, extent->user), memory_order_acquire) == 0)
            extent->user = EXTENT_KEPT;
}

static bool is_apart(const struct memory_extent *extent, struct segment_span span)
{
    return extent->offset >= span.offset + span.bytes ||
           span.offset >= extent->offset + extent->bytes;
}

/* Frees kept memory, least recently used first, except what lies in `but`, until there is room for
 * `fresh` bytes. */
static bool segments_make_room(struct segments *segments, size_t fresh, struct segment_span but)
{
    while (fresh > segments->limit || segment_bytes(segments) > segments->limit - fresh) {
        struct extents *extents = segments->own ? &segments->own->extents : NULL;
        const struct memory_extent *oldest = NULL;
        for (size_t i = 0; extents && i < extents->all.n; i++) {
            const struct memory_extent *extent = &extents->all.items[i];
            if (extent->user == EXTENT_KEPT && is_apart(extent, but) &&
                (!oldest || extent->used < oldest->used))
                oldest = extent;
        }
        if (!oldest)
            return false;
        segment_give_to_system(segments->own, (size_t)(oldest - extents->all.items));
    }
    return true;
}

static int find_slot(const struct segment *segment)
{
    bool taken[SEGMENT_SLOTS];
    memset(taken, 0, sizeof taken);
    for (size_t i = 0; i < segment->extents.all.n; i++)
        if (segment->extents.all.items[i].user != EXTENT_KEPT)
            taken[segment->extents.all.items[i].user] = true;
    for (int slot = 0; slot < SEGMENT_SLOTS; slot++)
        if (!taken[slot])
            return slot;
    return -1;
}

typedef VEC(struct segment_span) segment_span_vec;

/* Large tensors, other tensors, and chunks of collectives have separate spaces, as a smaller one
 * would fragment the memory that a larger one left. With the lock: returns the segment, held, in
 * which the span has a slot; NULL: there is no room. */
static struct segment *reserve(struct segments *segments, struct segment_span *span, int *slot,
                               segment_span_vec *gaps)
{
    size_t all = segment_whole_pages(segments->limit);
    if (!segments->own) {
        struct segment *made = segment_make(2 * all + segment_whole_pages(all / CHUNKS_SHARE));
        if (made && segments_add(segments, made))
            segments->own = made;
        if (made)
            segment_drop(made); /* the table still holds it */
    }
    struct segment *segment = segments->own;
    if (!segment)
        return NULL;
    size_t most = segment->bytes / 2, fresh;
    size_t space = most < all ? most : all;
    const size_t spaces[] = {0, space, 2 * space, segment->bytes};
    bool is_chunk = span->bytes < SEGMENT_LEAST_BYTES && 2 * space < segment->bytes;
    const size_t *from = &spaces[(span->bytes < LARGE_BYTES) + is_chunk];
    segment_collect(segment);
    *slot = find_slot(segment);
    if (*slot < 0 ||
        !extents_find(&segment->extents, from[0], from[1], span->bytes, &span->offset, &fresh) ||
        !segments_make_room(segments, fresh, *span))
        return NULL;
    /* Finds the gaps of the span, which have no memory yet. */
    size_t at = span->offset, end = span->offset + span->bytes;
    vec_each(extent, &segment->extents.all) {
        if (is_apart(extent, *span))
            continue;
        if (extent->offset > at)
            vec_push(gaps, ((struct segment_span){at, extent->offset - at}));
        at = extent->offset + extent->bytes;
    }
    if (at < end)
        vec_push(gaps, ((struct segment_span){at, end - at}));
    extents_use(&segment->extents, span->offset, span->bytes, *slot, time_now());
    atomic_store_explicit(&segment->head->slots[*slot].pages,
                          (unsigned)(span->bytes / SEGMENT_PAGE), memory_order_relaxed);
    atomic_store_explicit(segment_readers(segment, *slot), 1, memory_order_relaxed);
    return hold_segment(segment);
}

static size_t span_pages(const segment_span_vec *spans)
{
    size_t bytes = 0;
    for (size_t i = 0; i < spans->n; i++)
        bytes += spans->items[i].bytes;
    return bytes;
}

/* Allocates pages before they are written, so that a lack of memory is detected here. They are
 * mapped at once, which takes a third of the time of the page faults. Called without the lock, as
 * the system takes long to clear pages. */
static bool commit_all(const struct segment *segment, const segment_span_vec *gaps)
{
    size_t bytes = span_pages(gaps);
    bool good = !bytes || mem_charge(bytes);
    bool charged = good && bytes;
    for (size_t i = 0; good && i < gaps->n; i++) {
        struct segment_span gap = gaps->items[i];
        good = !fallocate(segment->fd, 0, (off_t)gap.offset, (off_t)gap.bytes);
        if (good)
            madvise(segment_data_at(segment, gap.offset), gap.bytes, MADV_POPULATE_WRITE);
    }
    if (!good && charged)
        mem_discharge(bytes);
    return good;
}

/* Returns NULL if the limit is reached, or the system has no memory. Called without the lock. */
static struct buffer *segments_take(struct segments *segments, size_t bytes)
{
    struct segment_span span = {.bytes = segment_whole_pages(bytes)};
    segment_span_vec gaps = VEC_INIT;
    int slot;
    pthread_mutex_lock(&segments->lock);
    struct segment *segment = reserve(segments, &span, &slot, &gaps);
    pthread_mutex_unlock(&segments->lock);
    bool good = segment && commit_all(segment, &gaps);
    if (segment && !good) {
        /* There is no memory for the gaps: frees the whole span. */
        pthread_mutex_lock(&segments->lock);
        for (size_t i = 0; i < segment->extents.all.n; i++)
            if (segment->extents.all.items[i].user == slot) {
                extents_forget(&segment->extents, i);
                break;
            }
        segment_uncommit(segment, span);
        atomic_store(segment_readers(segment, slot), 0);
        pthread_mutex_unlock(&segments->lock);
        mem_discharge(span.bytes - span_pages(&gaps));
        segment_drop(segment);
    }
    vec_release(&gaps);
    return good ? segment_buffer(segment, slot, span) : NULL;
}

/* ---- the interface ---- */

static struct tensor tensor_in(struct buffer *buffer, enum dtype type, const struct shape *shape)
{
    return (struct tensor){type, *shape, buffer->data, buffer, NULL};
}

static struct buffer *alloc_outgoing(struct outgoing_memory *outgoing, enum dtype type,
                                     size_t bytes)
{
    struct segments *segments = (struct segments *)outgoing;
    bool suits = atomic_load_explicit(&segments->has_reader, memory_order_relaxed) &&
                 segment_suits(type, bytes);
    return suits ? segments_take(segments, bytes) : NULL;
}

static bool copies_to_lend(struct outgoing_memory *outgoing, const struct tensor *value)
{
    const struct segments *segments = (struct segments *)outgoing;
    return atomic_load_explicit(&segments->has_reader, memory_order_relaxed) && !value->layout &&
           segment_suits(value->type, tensor_bytes(value)) && !segment_has(value);
}

static void unmap_idle(struct mem_reclaimer *reclaimer)
{
    segments_trim((struct segments *)((char *)reclaimer - offsetof(struct segments, reclaimer)), 0);
}

struct segments *segments_new(size_t limit)
{
    struct segments *segments = mem_alloc(sizeof *segments);
    segments->reclaimer.give_back = unmap_idle;
    mem_reclaimer_add(&segments->reclaimer);
    segments->outgoing = (struct outgoing_memory){alloc_outgoing, copies_to_lend};
    pthread_mutex_init(&segments->lock, NULL);
    segments->limit = limit ? limit : LIMIT_BYTES;
    return segments;
}

void segments_free(struct segments *segments)
{
    if (!segments)
        return;
    mem_reclaimer_remove(&segments->reclaimer);
    while (segments->n)
        segments_forget(segments, segments->n - 1);
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
    struct buffer *buffer = segments_take(segments, (size_t)shape_bytes(shape, type));
    if (buffer)
        *t = tensor_in(buffer, type, shape);
    return buffer != NULL;
}

struct outgoing_memory *segments_outgoing(struct segments *segments)
{
    return &segments->outgoing;
}

void segments_have_reader(struct segments *segments)
{
    atomic_store_explicit(&segments->has_reader, true, memory_order_relaxed);
}

/* With the lock: returns the segment, held; NULL: it is not there. */
static struct segment *find_or_open(struct segments *segments, const struct segment_offer *offer)
{
    for (int i = 0; i < segments->n; i++)
        if (segments->all[i]->number == offer->number)
            return hold_segment(segments->all[i]);
    struct segment *segment = segment_open(offer);
    if (segment && !segments_add(segments, segment)) {
        segment_drop(segment);
        return NULL;
    }
    return segment;
}

enum segment_reply segments_map(struct segments *segments, const struct segment_offer *offer,
                                enum dtype type, const struct shape *shape, struct tensor *t)
{
    int64_t bytes = shape_bytes(shape, type);
    size_t in_page = (size_t)offer->offset % SEGMENT_PAGE;
    struct segment_span span = {(size_t)offer->offset - in_page,
                                segment_whole_pages(bytes < 0 ? 0 : in_page + (size_t)bytes)};
    enum segment_reply reply = SEGMENT_TAKEN;
    pthread_mutex_lock(&segments->lock);
    struct segment *segment = find_or_open(segments, offer);
    bool is_in = segment && bytes >= 0 && offer->slot < (uint64_t)SEGMENT_SLOTS &&
                 offer->offset % dtype_bytes(type) == 0 && span.offset < segment->bytes &&
                 span.bytes <= segment->bytes - span.offset &&
                 span.bytes / SEGMENT_PAGE <= atomic_load(&segment->head->slots[offer->slot].pages);
    bool counts = is_in && segment_counts(segment, span.bytes);
    if (!is_in)
        reply = SEGMENT_NOT_THERE;
    else if (counts && !segments_make_room(segments, span.bytes, (struct segment_span){0, 0}))
        reply = SEGMENT_FULL;
    if (reply == SEGMENT_TAKEN && counts) {
        atomic_fetch_add(&segment->in_use, span.bytes);
        /* Maps the pages at once, unless those of the slot were mapped before. */
        struct segment_span *mapped = &segment->mapped[offer->slot];
        if (mapped->offset != span.offset || mapped->bytes != span.bytes)
            madvise(segment_data_at(segment, span.offset), span.bytes, MADV_POPULATE_READ);
        *mapped = span;
    }
    pthread_mutex_unlock(&segments->lock);
    if (reply == SEGMENT_TAKEN) {
        *t = tensor_in(segment_buffer(segment, (int)offer->slot, span), type, shape);
        t->data = (char *)t->data + in_page;
    } else if (segment) {
        segment_drop(segment);
    }
    return reply;
}

/* Returns whether memory was left with other processes for longer than that: they may have died. */
static bool trim_extents(struct segment *segment, double now, double seconds)
{
    bool is_left = false;
    segment_collect(segment);
    for (size_t i = segment->extents.all.n; i-- > 0;) {
        struct memory_extent *extent = &segment->extents.all.items[i];
        bool is_kept = extent->user == EXTENT_KEPT;
        if (!is_kept && atomic_load(&segment->tensors[extent->user]) > 0)
            extent->used = now;
        else if (is_kept && extent->used < now - seconds)
            segment_give_to_system(segment, i);
        else
            is_left |= !is_kept && extent->used < now - seconds;
    }
    return is_left;
}

/* Memory left with others cannot be told from memory that they read. It is freed with its whole
 * segment, once no process maps that: so no more tensors are put there. */
void segments_trim(struct segments *segments, double seconds)
{
    double now = time_now();
    pthread_mutex_lock(&segments->lock);
    for (int i = segments->n - 1; i >= 0; i--) {
        struct segment *segment = segments->all[i];
        bool is_left = segment->own && trim_extents(segment, now, seconds);
        if (is_left && segments->own == segment)
            segments->own = NULL;
        if (atomic_load(&segment->holders) > 1)
            segment->used = now;
        else if (segment->used < now - seconds && segment != segments->own)
            segments_forget(segments, i);
    }
    pthread_mutex_unlock(&segments->lock);
}
