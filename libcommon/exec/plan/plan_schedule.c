/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of items in a region.
 */

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
                       items[from].role == ROLE_NEXT && !before->of_all;
        if (from < 0 || is_next || (k < n_needed && items[from].removed))
            continue;
        before->item = from;
        before->input = k < item->n_in ? k : EDGE_CONTROL;
        before->slot = k < item->n_in ? item->in[k] - items[from].out[0] : -1;
        before->is_after = k >= n_needed;
        return true;
    }
    return false;
}

/* Finds the next item of its rank that an item waits for. */
static bool next_of_rank(const struct schedule *s, int item, struct before *before)
{
    while (s->rank[item] >= 0 && plan_next_before(s->plan, item, before))
        if (s->rank[before->item] == s->rank[item])
            return true;
    return false;
}

/* Goes backwards from items that nothing of their rank waits for. */
static void measure_ways(struct schedule *s, int n)
{
    int *open = arena_array(&s->memory, (size_t)n + 1, sizeof *open);
    int *stack = arena_array(&s->memory, (size_t)n + 1, sizeof *stack), n_stack = 0;
    for (int i = 0; i < n; i++)
        if (!(open[i] = (int)s->next[i].n))
            stack[n_stack++] = i;
    while (n_stack) {
        int item = stack[--n_stack];
        for (struct before b = {0}; next_of_rank(s, item, &b);) {
            int way = s->left[item] + 1;
            s->left[b.item] = way > s->left[b.item] ? way : s->left[b.item];
            if (!--open[b.item])
                stack[n_stack++] = b.item;
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
    for (int i = 0; i < n; i++)
        for (struct before b = {0}; next_of_rank(&s, i, &b); s.pending[i]++)
            vec_push_in(&s.memory, &s.next[b.item], i);
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
