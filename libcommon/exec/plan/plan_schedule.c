/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of items in a region.
 */
#include <stdlib.h>

#include "base/heap.h"
#include "base/memory.h"
#include "exec/plan/plan_steps.h"

typedef VEC(int) int_vec;

struct schedule {
    const struct plan *plan;
    const int *rank;
    int *pending;
    int_vec *next;
    int *left; /* length of the longest chain of items after it */
    struct heap heap;
    struct arena memory;
};

/* Work that is nearly finished goes first: a gradient before those of the layers below, and its
 * update or its Send at once. This frees its inputs early, and lets others proceed. */
static bool goes_before(const void *schedule, int a, int b)
{
    const struct schedule *s = schedule;
    if (s->rank[a] != s->rank[b])
        return s->rank[a] < s->rank[b];
    return s->left[a] != s->left[b] ? s->left[a] < s->left[b] : a < b;
}

bool plan_next_before(const struct plan *plan, int id, struct before *before)
{
    const struct item *item = &plan->items.items[id], *items = plan->items.items;
    int n_needed = item->n_in + item->n_controls;
    for (int k; (k = before->next++) < n_needed + (int)item->after.n;) {
        int from = k < item->n_in ? plan_maker(plan, item, k)
                   : k < n_needed ? item->controls[k - item->n_in]
                                  : item->after.items[k - n_needed];
        bool is_next = k < item->n_in && from >= 0 && item->role == ROLE_MERGE &&
                       items[from].role == ROLE_NEXT;
        if (from < 0 || is_next || (k < n_needed && items[from].removed))
            continue;
        before->item = from;
        before->slot = k < item->n_in ? item->in[k] - items[from].out[0] : -1;
        before->is_after = k >= n_needed;
        return true;
    }
    return false;
}

static void schedule_edges(struct schedule *s)
{
    for (int i = 0; i < (int)s->plan->items.n; i++)
        for (struct before b = {0}; s->rank[i] >= 0 && plan_next_before(s->plan, i, &b);) {
            if (s->rank[b.item] != s->rank[i])
                continue;
            vec_push_in(&s->memory, &s->next[b.item], i);
            s->pending[i]++;
        }
}

/* Goes backwards through any topological order. */
static void measure_ways(struct schedule *s, int n)
{
    int *pending = arena_array(&s->memory, (size_t)n + 1, sizeof *pending);
    int *stack = arena_array(&s->memory, (size_t)n + 1, sizeof *stack), at = 0, end = 0;
    for (int i = 0; i < n; i++)
        if (!(pending[i] = s->pending[i]))
            stack[end++] = i;
    for (; at < end; at++)
        for (size_t k = 0; k < s->next[stack[at]].n; k++)
            if (--pending[s->next[stack[at]].items[k]] == 0)
                stack[end++] = s->next[stack[at]].items[k];
    while (end-- > 0) {
        int item = stack[end];
        for (size_t k = 0; k < s->next[item].n; k++) {
            int way = s->left[s->next[item].items[k]] + 1;
            s->left[item] = way > s->left[item] ? way : s->left[item];
        }
    }
}

int plan_sort(const struct plan *plan, const int *rank, int *order, int *n_order, struct error *err)
{
    int n = (int)plan->items.n, wanted = 0;
    struct schedule s = {.plan = plan, .rank = rank, .memory = ARENA_INIT};
    s.pending = arena_array(&s.memory, 3 * (size_t)n + 3, sizeof *s.pending);
    s.left = s.pending + n;
    s.heap = (struct heap){.items = s.left + n, .before = goes_before, .context = &s};
    s.next = arena_array(&s.memory, (size_t)n + 1, sizeof *s.next);
    schedule_edges(&s);
    measure_ways(&s, n);
    for (int i = 0; i < n; i++) {
        wanted += rank[i] >= 0;
        if (rank[i] >= 0 && s.pending[i] == 0)
            heap_push(&s.heap, i);
    }
    *n_order = 0;
    while (s.heap.n) {
        int item = heap_pop(&s.heap);
        order[(*n_order)++] = item;
        for (size_t k = 0; k < s.next[item].n; k++)
            if (--s.pending[s.next[item].items[k]] == 0)
                heap_push(&s.heap, s.next[item].items[k]);
    }
    arena_release(&s.memory);
    if (*n_order == wanted)
        return 0;
    return error_set(err, ERR_INTERNAL, "the plan has a cycle among reads and writes");
}
