/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/value/segment.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "base/time.h"
#include "transport/value/segment_private.h"

#define LIMIT_BYTES ((size_t)4 << 30)

static struct tensor tensor_in(struct buffer *buffer, enum dtype type, const struct shape *shape)
{
    return (struct tensor){type, *shape, buffer->data, buffer, NULL};
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

struct segment *segment_hold(struct segment *segment)
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

bool segments_add(struct segments *segments, struct segment *segment)
{
    /* Another's that nobody has makes place, the one first that was not used for longest. */
    int oldest = -1;
    for (int i = 0; i < segments->n && segments->n == SEGMENTS_MAX; i++)
        if (!segments->all[i]->own && atomic_load(&segments->all[i]->holders) == 1 &&
            (oldest < 0 || segments->all[i]->used < segments->all[oldest]->used))
            oldest = i;
    if (oldest >= 0)
        segments_forget(segments, oldest);
    if (segments->n >= SEGMENTS_MAX)
        return false;
    segments->all[segments->n++] = segment_hold(segment);
    return true;
}

/* ---- the interface ---- */

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

/* With the lock: the segment, held; NULL: it is not there. */
static struct segment *find_or_open(struct segments *segments, const struct segment_offer *offer)
{
    for (int i = 0; i < segments->n; i++)
        if (segments->all[i]->number == offer->number)
            return segment_hold(segments->all[i]);
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
        /* Its pages are mapped at once, but where those of the slot were before. */
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

/* True: something is left with others for longer than that, who may have died. */
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

/* Memory that is left with others cannot be told from what they read, and goes when they do, with
 * all that it lies in: no more is put there. */
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
