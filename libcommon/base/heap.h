/* SPDX-License-Identifier: Apache-2.0
 *
 * A binary heap of numbers, in the caller's array, which has room for all of them.
 */
#ifndef TF_BASE_HEAP_H
#define TF_BASE_HEAP_H

#include <stdbool.h>

struct heap {
    int *items, n;
    bool (*before)(const void *context, int a, int b); /* returns whether a is popped before b */
    const void *context;
};

static inline void heap_push(struct heap *heap, int number)
{
    int i = heap->n++;
    while (i > 0 && heap->before(heap->context, number, heap->items[(i - 1) / 2])) {
        heap->items[i] = heap->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap->items[i] = number;
}

/* Pops the first number of a heap that is not empty. */
static inline int heap_pop(struct heap *heap)
{
    int *items = heap->items, top = items[0], last = items[--heap->n], i = 0;
    for (int child; (child = 2 * i + 1) < heap->n; i = child) {
        if (child + 1 < heap->n && heap->before(heap->context, items[child + 1], items[child]))
            child++;
        if (!heap->before(heap->context, items[child], last))
            break;
        items[i] = items[child];
    }
    items[i] = last;
    return top;
}

#endif
