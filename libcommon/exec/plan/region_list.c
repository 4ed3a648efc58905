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
    const struct while_loop *loop = item->state;
    int n = 0;
    list[n++] = id;
    if (item->builtin != BUILTIN_LOOP)
        return n;
    const struct dynamic_frame *frame = &plan->dynamic->frames.items[loop - plan->loops.items];
    for (size_t i = 0; i < frame->order.n; i++)
        n += list_item(plan, frame->order.items[i].item, list + n);
    return n;
}

int region_list(const struct plan *plan, int *list)
{
    const struct dynamic *d = plan->dynamic;
    struct listed *all = mem_array(plan->items.n + 1, sizeof *all);
    int n = 0, n_listed = 0;
    for (size_t i = 0; i < plan->items.n; i++) {
        const struct dynamic_item *di = &d->items[i];
        bool is_point = di->region < 0;
        if (!plan->items.items[i].removed && !plan_is_repeated(plan, &plan->items.items[i]))
            all[n++] =
                (struct listed){.n_ready = di->n_ready,
                                .rank = is_point ? (int)i : d->regions.items[di->region].rank,
                                .item = (int)i,
                                .is_point = is_point};
    }
    if (n)
        qsort(all, (size_t)n, sizeof *all, by_readiness);
    for (int i = 0, next; i < n; i = next) {
        int region = d->items[all[i].item].region;
        const struct region *r = region < 0 ? NULL : &d->regions.items[region];
        next = r ? i + r->n : i + 1;
        for (int k = i; k < next; k++) /* of a region in its order */
            n_listed += list_item(plan, r ? r->items[k - i].item : all[k].item, list + n_listed);
    }
    mem_free(all);
    return n_listed;
}

int region_count(const struct plan *plan)
{
    size_t n = plan->dynamic->regions.n;
    for (size_t i = 0; i < plan->loops.n; i++)
        n -= plan->loops.items[i].is_item ? 2 : 0;
    return (int)n;
}

/* Which region it, or the loop that it is in, is an item of; -1: it is a point. */
static int region_of(const struct plan *plan, int id)
{
    while (plan_is_repeated(plan, &plan->items.items[id]))
        id = plan->loops.items[plan->items.items[id].frame].item;
    int region = plan->dynamic->items[id].region;
    return region < 0 ? -1 : plan->dynamic->regions.items[region].rank;
}

void region_describe(const struct plan *plan, const int *list, int n, struct plan_item *items)
{
    const struct dynamic *d = plan->dynamic;
    int *at = mem_array(plan->items.n + 1, sizeof *at);
    for (int i = 0; i < n; i++)
        at[list[i]] = i;
    for (int i = 0; i < n; i++) {
        const struct dynamic_item *di = &d->items[list[i]];
        const struct region_item *order = d->frames.items[di->frame].order.items;
        items[i].region = region_of(plan, list[i]);
        if (di->region < 0) {
            items[i].live_from = items[i].live_to = -1;
        } else if (items[i].live_from >= 0) {
            items[i].live_from = at[order[items[i].live_from].item];
            items[i].live_to = at[order[items[i].live_to].item];
        }
    }
    mem_free(at);
}
