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

void region_list(struct plan *plan)
{
    const struct dynamic *d = plan->dynamic;
    struct listed *all = mem_array(plan->items.n + 1, sizeof *all);
    plan->order = arena_array(&plan->memory, plan->items.n + 1, sizeof *plan->order);
    plan->n_order = 0;
    for (size_t i = 0; i < plan->items.n; i++) {
        const struct dynamic_item *di = &d->items[i];
        bool is_point = di->region < 0;
        if (!plan->items.items[i].removed)
            all[plan->n_order++] =
                (struct listed){.n_ready = di->n_ready,
                                .rank = is_point ? (int)i : d->regions.items[di->region].rank,
                                .item = (int)i,
                                .is_point = is_point};
    }
    qsort(all, (size_t)plan->n_order, sizeof *all, by_readiness);
    for (int i = 0, next; i < plan->n_order; i = next) {
        int region = d->items[all[i].item].region;
        const struct region *r = region < 0 ? NULL : &d->regions.items[region];
        next = r ? i + r->n : i + 1;
        for (int k = i; k < next; k++) /* of a region in its order */
            plan->order[k] =
                r ? d->frames.items[r->frame].order.items[r->first + k - i].item : all[k].item;
    }
    mem_free(all);
}

int region_count(const struct plan *plan)
{
    return (int)plan->dynamic->regions.n;
}

void region_describe(const struct plan *plan, struct plan_item *items)
{
    const struct dynamic *d = plan->dynamic;
    int *at = mem_array(plan->items.n + 1, sizeof *at);
    for (int i = 0; i < plan->n_order; i++)
        at[plan->order[i]] = i;
    for (int i = 0; i < plan->n_order; i++) {
        const struct dynamic_item *di = &d->items[plan->order[i]];
        const struct region_item *order = d->frames.items[di->frame].order.items;
        items[i].region = di->region < 0 ? -1 : d->regions.items[di->region].rank;
        if (di->region < 0) {
            items[i].live_from = items[i].live_to = -1;
        } else if (items[i].live_from >= 0) {
            items[i].live_from = at[order[items[i].live_from].item];
            items[i].live_to = at[order[items[i].live_to].item];
        }
    }
    mem_free(at);
}
