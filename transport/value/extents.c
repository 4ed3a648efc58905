/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/value/extents.h"

#include <string.h>

static size_t end_of(const struct memory_extent *extent)
{
    return extent->offset + extent->bytes;
}

struct extent_place {
    bool any;
    size_t offset, fresh, behind;
};

/* Keeps the offset if it needs less fresh memory than the best one, or leaves less of an extent. */
static void consider(const struct extents *extents, size_t offset, size_t to, size_t bytes,
                     struct extent_place *best)
{
    size_t kept, behind;
    if (offset > to || bytes > to - offset)
        return;
    /* Counts the kept bytes of [offset, offset + bytes), and the bytes behind it in the extent
     * where it ends. Returns if some are in use. */
    size_t end = offset + bytes;
    kept = behind = 0;
    vec_each(extent, &extents->all) {
        size_t first = extent->offset > offset ? extent->offset : offset;
        size_t last = end_of(extent) < end ? end_of(extent) : end;
        if (first >= last)
            continue;
        if (extent->user != EXTENT_KEPT)
            return;
        kept += last - first;
        behind = end_of(extent) - last;
    }
    size_t fresh = bytes - kept;
    if (best->any && (fresh > best->fresh || (fresh == best->fresh && behind >= best->behind)))
        return;
    *best = (struct extent_place){true, offset, fresh, behind};
}

bool extents_find(const struct extents *extents, size_t from, size_t to, size_t bytes,
                  size_t *offset, size_t *fresh)
{
    struct extent_place best = {false, 0, 0, 0};
    consider(extents, from, to, bytes, &best);
    vec_each(extent, &extents->all) { /* candidates begin or end where an extent does */
        bool is_kept = extent->user == EXTENT_KEPT;
        size_t first = is_kept ? extent->offset : end_of(extent);
        size_t end = is_kept ? end_of(extent) : extent->offset;
        if (first >= from && first < to)
            consider(extents, first, to, bytes, &best);
        if (end >= from + bytes && end <= to)
            consider(extents, end - bytes, to, bytes, &best);
    }
    *offset = best.offset;
    *fresh = best.fresh;
    return best.any;
}

static void insert(struct extents *extents, size_t i, struct memory_extent extent)
{
    vec_push(&extents->all, extent);
    memmove(extents->all.items + i + 1, extents->all.items + i,
            (extents->all.n - 1 - i) * sizeof extent);
    extents->all.items[i] = extent;
}

/* An extent on both sides of `offset` becomes two. */
static void split(struct extents *extents, size_t offset)
{
    for (size_t i = 0; i < extents->all.n; i++) {
        struct memory_extent *extent = &extents->all.items[i];
        if (extent->offset >= offset || end_of(extent) <= offset)
            continue;
        struct memory_extent rest = *extent;
        rest.offset = offset;
        rest.bytes = end_of(extent) - offset;
        extent->bytes = offset - extent->offset;
        insert(extents, i + 1, rest);
        return;
    }
}

void extents_use(struct extents *extents, size_t offset, size_t bytes, int user, double now)
{
    size_t i = 0;
    split(extents, offset);
    split(extents, offset + bytes);
    while (i < extents->all.n && extents->all.items[i].offset < offset)
        i++;
    while (i < extents->all.n && extents->all.items[i].offset < offset + bytes)
        extents_forget(extents, i);
    insert(extents, i, (struct memory_extent){offset, bytes, user, now});
}

void extents_forget(struct extents *extents, size_t i)
{
    memmove(extents->all.items + i, extents->all.items + i + 1,
            (--extents->all.n - i) * sizeof *extents->all.items);
}

size_t extents_bytes(const struct extents *extents)
{
    size_t bytes = 0;
    for (size_t i = 0; i < extents->all.n; i++)
        bytes += extents->all.items[i].bytes;
    return bytes;
}
