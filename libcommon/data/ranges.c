/* SPDX-License-Identifier: Apache-2.0 */
#include "data/ranges.h"

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

int ranges_parse(const char *text, struct ranges *ranges, struct error *err)
{
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ",");
        struct range range;
        if (!range_parse(at, n, &range))
            return error_set(err, ERR_USAGE, "'%s' is not a list of positions as 1-64,70", text);
        vec_push(ranges, range);
        at += n;
        if (!*at)
            return 0;
    }
}

void ranges_release(struct ranges *ranges)
{
    vec_release(ranges);
}

bool ranges_contain(const struct ranges *ranges, int64_t position)
{
    for (size_t i = 0; i < ranges->n; i++)
        if (position >= ranges->items[i].first && position <= ranges->items[i].last)
            return true;
    return ranges->n == 0;
}

int64_t ranges_last(const struct ranges *ranges)
{
    int64_t last = ranges->n ? 0 : RANGE_OPEN;
    for (size_t i = 0; i < ranges->n; i++)
        if (ranges->items[i].last > last)
            last = ranges->items[i].last;
    return last;
}
