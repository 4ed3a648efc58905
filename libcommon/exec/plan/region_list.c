/* SPDX-License-Identifier: Apache-2.0
 *
 * A dynamic plan as it is shown.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "exec/plan/region_private.h"

struct listed {
    int n_ready, rank, item;
    bool is_point;
};

/* What waits for less comes first; regions before the points that may wait for them. */
static int by_readiness(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    if (x->n_ready != y->n_ready)
        return x->n_ready < y->n_ready ? -1 : 1;
    if (x->is_point != y->is_point)
        return x->is_point ? 1 : -1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The item, and behind one that stands for a loop all that it has done. */
static int list_item(const struct plan *plan, int id, int *list)
{
    const struct item *item = &plan->items.items[id];
    const struct plan_frame *loop = item->builtin == BUILTIN_LOOP ? item->state : NULL;
    int n = 0;
    list[n++] = id;
    for (size_t i = 0; loop && i < loop->order.n; i++)
        n += list_item(plan, loop->order.items[i].item, list + n);
    return n;
}

int region_list(const struct plan *plan, int *list)
{
    struct listed *all = mem_array(plan->items.n + 1, sizeof *all);
    int n = 0, n_listed = 0;
    for (size_t i = 0; i < plan->items.n; i++) {
        const struct item *item = &plan->items.items[i];
        bool is_point = item->region < 0;
        if (!item->removed && !plan_is_repeated(plan, item))
            all[n++] =
                (struct listed){.n_ready = item->n_ready,
                                .rank = is_point ? (int)i : plan->regions.items[item->region].rank,
                                .item = (int)i,
                                .is_point = is_point};
    }
    if (n)
        qsort(all, (size_t)n, sizeof *all, by_readiness);
    for (int i = 0, next; i < n; i = next) {
        int region = plan->items.items[all[i].item].region;
        const struct region *r = region < 0 ? NULL : &plan->regions.items[region];
        next = r ? i + r->n : i + 1;
        for (int k = i; k < next; k++) /* of a region in its order */
            n_listed += list_item(plan, r ? r->items[k - i].item : all[k].item, list + n_listed);
    }
    mem_free(all);
    return n_listed;
}

int region_count(const struct plan *plan)
{
    size_t n = plan->regions.n;
    for (size_t i = 0; i < plan->frames.n; i++)
        n -= plan->frames.items[i].is_item ? 2 : 0;
    return (int)n;
}

/* Which region it, or the loop that it is in, is an item of; -1: it is a point. */
static int region_of(const struct plan *plan, int id)
{
    while (plan_is_repeated(plan, &plan->items.items[id]))
        id = plan->frames.items[plan->items.items[id].frame].item;
    int region = plan->items.items[id].region;
    return region < 0 ? -1 : plan->regions.items[region].rank;
}

void region_describe(const struct plan *plan, const int *list, int n, struct plan_item *items)
{
    int *at = mem_array(plan->items.n + 1, sizeof *at);
    for (int i = 0; i < n; i++)
        at[list[i]] = i;
    for (int i = 0; i < n; i++) {
        const struct item *item = &plan->items.items[list[i]];
        const struct region_item *order = plan->frames.items[item->frame].order.items;
        items[i].region = region_of(plan, list[i]);
        if (item->region < 0) {
            items[i].live_from = items[i].live_to = -1;
        } else if (items[i].live_from >= 0) {
            items[i].live_from = at[order[items[i].live_from].item];
            items[i].live_to = at[order[items[i].live_to].item];
        }
    }
    mem_free(at);
}
