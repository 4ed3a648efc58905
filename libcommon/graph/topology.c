/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/topology.h"

#include "base/heap.h"
#include "base/memory.h"
#include "base/str.h"

struct successors successors_new(struct arena *memory, size_t n, const arc_vec *const *arrays)
{
    size_t n_arcs = 0;
    for (int k = 0; arrays[k]; k++)
        n_arcs += arrays[k]->n;
    struct successors s = {.first = arena_array(memory, n + 2, sizeof *s.first),
                           .to = arena_array(memory, n_arcs + 1, sizeof *s.to),
                           .n = (int)n};
    for (int k = 0; arrays[k]; k++)
        vec_each(arc, arrays[k])
            s.first[arc->from + 2]++;
    for (size_t v = 2; v <= n; v++)
        s.first[v] += s.first[v - 1];
    for (int k = 0; arrays[k]; k++)
        vec_each(arc, arrays[k])
            s.to[s.first[arc->from + 1]++] = arc->to;
    return s;
}

static bool is_less(const void *context, int a, int b)
{
    (void)context;
    return a < b;
}

int successors_order(const struct successors *next, int *order, int *position)
{
    int n = next->n, done = 0, last = n;
    int *pending = mem_array(2 * (size_t)n + 1, sizeof *pending);
    struct heap ready = {.items = pending + n, .before = is_less};
    for (int e = 0; e < next->first[n]; e++)
        pending[next->to[e]]++;
    for (int v = 0; v < n; v++)
        if (!pending[v])
            heap_push(&ready, v);
    while (ready.n) {
        int v = heap_pop(&ready);
        position[v] = done;
        order[done++] = v;
        for (int e = next->first[v]; e < next->first[v + 1]; e++)
            if (!--pending[next->to[e]])
                heap_push(&ready, next->to[e]);
    }
    for (int v = 0; v < n; v++)
        if (pending[v])
            position[order[--last] = v] = -1;
    mem_free(pending);
    return done;
}

/* Each vertex without a position has one before it. */
int successors_cycle(const struct successors *next, const int *position, int *cycle)
{
    int *before = mem_array(2 * (size_t)next->n, sizeof *before), *met = before + next->n;
    int v = 0, n = 0;
    for (int from = next->n - 1; from >= 0; from--)
        for (int e = next->first[from]; position[from] < 0 && e < next->first[from + 1]; e++)
            before[next->to[e]] = from;
    while (position[v] >= 0)
        v++;
    for (; !met[v]; v = before[v])
        met[v] = 1;
    for (; met[v] == 1; v = before[v]) {
        met[v] = 2;
        cycle[n++] = v;
    }
    mem_free(before);
    return n;
}

int successors_sort(const struct successors *next, const char *const *names, int *order,
                    struct error *err)
{
    int *position = mem_array((size_t)next->n + 1, sizeof *position), code = 0;
    if (successors_order(next, order, position) < next->n) {
        struct str text = STR_INIT;
        int n = successors_cycle(next, position, order);
        for (int i = 0; i < n && text.n < 200; i++)
            str_printf(&text, "%s <- ", names[order[i]]);
        code = error_set(err, ERR_DATA, "the graph has a cycle: %s%s", str_text(&text),
                         names[order[0]]);
        str_release(&text);
    }
    mem_free(position);
    return code;
}
