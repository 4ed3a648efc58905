/* SPDX-License-Identifier: Apache-2.0 */
#include "data/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"

static bool parse_position(const char *text, size_t n, int64_t *position)
{
    return number_int64(text, n, position) == NUMBER_OK && *position > 0 && *text != '+';
}

bool range_parse(const char *text, size_t n, struct range *range)
{
    const char *dash = memchr(text, '-', n);
    if (!dash) {
        bool ok = parse_position(text, n, &range->first);
        range->last = range->first;
        return ok;
    }
    size_t before = (size_t)(dash - text), after = n - before - 1;
    range->first = 1;
    range->last = RANGE_OPEN;
    return (before || after) && (!before || parse_position(text, before, &range->first)) &&
           (!after || parse_position(dash + 1, after, &range->last)) && range->first <= range->last;
}

static int by_first(const void *a, const void *b)
{
    const struct range *one = a, *other = b;
    return (one->first > other->first) - (one->first < other->first);
}

int ranges_parse(const char *text, struct ranges *ranges, struct error *err)
{
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ",");
        struct range range;
        if (!range_parse(at, n, &range))
            return error_set(err, ERR_USAGE,
                             "'%.*s' is no position from 1 to 2^63 - 1, nor a range as 5-9 or 5-",
                             (int)(n < 80 ? n : 80), at);
        vec_push(ranges, range);
        at += n;
        if (!*at)
            break;
    }
    size_t n = 0;
    qsort(ranges->items, ranges->n, sizeof *ranges->items, by_first);
    for (size_t i = 1; i < ranges->n; i++) {
        struct range *last = &ranges->items[n], next = ranges->items[i];
        if (next.first > last->last)
            ranges->items[++n] = next;
        else if (next.last > last->last)
            last->last = next.last;
    }
    ranges->n = n + 1;
    return 0;
}

void ranges_release(struct ranges *ranges)
{
    vec_release(ranges);
}

bool ranges_contain(const struct ranges *ranges, int64_t position)
{
    size_t first = 0, end = ranges->n; /* the last range that begins at or before it */
    while (end - first > 1) {
        size_t middle = first + (end - first) / 2;
        if (ranges->items[middle].first <= position)
            first = middle;
        else
            end = middle;
    }
    return ranges->n == 0 ||
           (position >= ranges->items[first].first && position <= ranges->items[first].last);
}

int64_t ranges_last(const struct ranges *ranges)
{
    return ranges->n ? ranges->items[ranges->n - 1].last : RANGE_OPEN;
}
