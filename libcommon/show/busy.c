/* SPDX-License-Identifier: Apache-2.0 */
#include "show/busy.h"

#include <stdlib.h>
#include <string.h>

static int by_start(const void *a, const void *b)
{
    const struct busy_span *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Returns the spans sorted, and joined where they touch. */
static busy_span_vec join(const busy_span_vec *spans)
{
    busy_span_vec all = VEC_INIT;
    vec_reserve(&all, spans->n + 1);
    if (spans->n)
        memcpy(all.items, spans->items, spans->n * sizeof *spans->items);
    qsort(all.items, spans->n, sizeof *all.items, by_start);
    for (size_t i = 0; i < spans->n; i++) {
        const struct busy_span next = all.items[i];
        if (!all.n || next.start > all.items[all.n - 1].end)
            all.items[all.n++] = next;
        else if (next.end > all.items[all.n - 1].end)
            all.items[all.n - 1].end = next.end;
    }
    return all;
}

double busy_share(const busy_span_vec *all, const busy_span_vec *busy)
{
    busy_span_vec wide = join(all), narrow = join(busy);
    double time = 0, filled = 0;
    for (size_t i = 0, k = 0; i < wide.n; i++) {
        const struct busy_span *span = &wide.items[i];
        time += (double)(span->end - span->start);
        while (k < narrow.n && narrow.items[k].end <= span->start)
            k++;
        for (; k < narrow.n && narrow.items[k].start < span->end; k++) {
            const struct busy_span *by = &narrow.items[k];
            int64_t start = by->start > span->start ? by->start : span->start;
            int64_t end = by->end < span->end ? by->end : span->end;
            filled += end > start ? (double)(end - start) : 0;
            if (narrow.items[k].end > span->end) /* it reaches into the next one */
                break;
        }
    }
    vec_release(&wide);
    vec_release(&narrow);
    return time > 0 ? filled / time : -1;
}
