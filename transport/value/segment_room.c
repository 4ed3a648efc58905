/* SPDX-License-Identifier: Apache-2.0
 *
 * Room in this process's segment.
 */
#include <string.h>

#include "base/time.h"
#include "transport/value/segment_private.h"

#define LARGE_BYTES ((size_t)8 << 20)
#define CHUNKS_SHARE 32 /* of the limit: so much chunks may take */

static size_t segment_bytes(const struct segments *segments)
{
    size_t bytes = 0;
    for (int i = 0; i < segments->n; i++)
        bytes += segments->all[i]->own ? extents_bytes(&segments->all[i]->extents)
                                       : atomic_load(&segments->all[i]->in_use);
    return bytes;
}

void segment_give_to_system(struct segment *segment, size_t i)
{
    const struct memory_extent *extent = &segment->extents.all.items[i];
    segment_uncommit(segment, (struct segment_span){extent->offset, extent->bytes});
    mem_discharge(extent->bytes);
    extents_forget(&segment->extents, i);
}

void segment_collect(struct segment *segment)
{
    for (size_t i = 0; i < segment->extents.all.n; i++) {
        int slot = segment->extents.all.items[i].user;
        if (slot != EXTENT_KEPT &&
            atomic_load_explicit(segment_readers(segment, slot), memory_order_acquire) == 0)
            extents_keep(&segment->extents, i);
    }
}

static bool is_apart(const struct memory_extent *extent, struct segment_span span)
{
    return extent->offset >= span.offset + span.bytes ||
           span.offset >= extent->offset + extent->bytes;
}

bool segments_make_room(struct segments *segments, size_t fresh, struct segment_span but)
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

/* Large tensors, others, and chunks of a collective lie in spaces of their own: a smaller one would
 * part the memory that a larger one left. With the lock: the segment, held, in which the span
 * has a slot; NULL: there is no room. */
static struct segment *reserve(struct segments *segments, struct segment_span *span, int *slot,
                               segment_span_vec *gaps)
{
    size_t all = segment_whole_pages(segments->limit);
    if (!segments->own) {
        struct segment *made = segment_make(2 * all + segment_whole_pages(all / CHUNKS_SHARE));
        if (made && segments_add(segments, made))
            segments->own = made;
        if (made)
            segment_drop(made); /* the table's hold is left */
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
    /* The part of the span that has no memory yet. */
    size_t at = span->offset, end = span->offset + span->bytes;
    for (size_t i = 0; i < segment->extents.all.n; i++) {
        const struct memory_extent *extent = &segment->extents.all.items[i];
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
    return segment_hold(segment);
}

static size_t span_pages(const segment_span_vec *spans)
{
    size_t bytes = 0;
    for (size_t i = 0; i < spans->n; i++)
        bytes += spans->items[i].bytes;
    return bytes;
}

/* Without the lock for as long as the system clears the pages. */
static bool commit_all(const struct segment *segment, const segment_span_vec *gaps)
{
    size_t bytes = span_pages(gaps);
    bool good = !bytes || mem_charge(bytes);
    bool charged = good && bytes;
    for (size_t i = 0; good && i < gaps->n; i++)
        good = segment_commit(segment, gaps->items[i]);
    if (!good && charged)
        mem_discharge(bytes);
    return good;
}

struct buffer *segments_take(struct segments *segments, size_t bytes)
{
    struct segment_span span = {.bytes = segment_whole_pages(bytes)};
    segment_span_vec gaps = VEC_INIT;
    int slot;
    pthread_mutex_lock(&segments->lock);
    struct segment *segment = reserve(segments, &span, &slot, &gaps);
    pthread_mutex_unlock(&segments->lock);
    bool good = segment && commit_all(segment, &gaps);
    if (segment && !good) {
        /* There is no memory for the gaps: nothing of the span is left. */
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
