/* SPDX-License-Identifier: Apache-2.0
 *
 * Where what regions compute lies: in an arena of each iteration of a frame, but for what others
 * may keep, and for what little regions of loops compute.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "exec/plan/region_private.h"

/* An item gets memory that one of another region used last. */
struct reuse {
    int from_region, to_region;
    int position; /* of `before` in its region */
    int before, item;
};

struct reuses {
    struct region_find *f;
    VEC(struct reuse) all;
};

/* In a loop a region that does little would keep memory for each iteration that runs ahead. What is
 * copied to the device may still be when its only consumer turned out to be dead. */
static bool has_no_place(const struct region_find *f, const struct item *item, int region, int v)
{
    const struct value *value = &f->plan->values.items[v];
    const struct region *r = &f->plan->regions.items[region];
    return value->is_outgoing || value->alias_input >= 0 || value->type == STRING ||
           !shape_is_known(&value->shape) || plan_is_copied(f->plan, item) ||
           (r->frame && r->is_cheap && !item->scratch_bytes) || f->alone;
}

/* What a point gets, what is fetched or copied, and what an op keeps, may be needed for longer than
 * anybody knows here. */
static void find_counted(struct region_find *f)
{
    struct plan *plan = f->plan;
    for (size_t i = 0; i < plan->items.n; i++) {
        const struct item *item = &plan->items.items[i];
        for (int k = 0; k < item->n_in && !item->removed; k++)
            if (item->in[k] >= 0)
                plan->values.items[item->in[k]].n_uses++;
        if (item->removed || plan_is_repeated(plan, item))
            continue;
        plan_count_inputs(plan, item,
                          item->is_point || item->builtin == BUILTIN_FETCH ||
                              plan_is_copied(plan, item));
        for (int k = 0; item->region >= 0 && k < item->n_out; k++)
            if (has_no_place(f, item, item->region, item->out[k]))
                plan->values.items[item->out[k]].is_counted = true;
    }
}

static bool may_follow(void *context, int before, int id)
{
    const struct region_find *f = ((const struct reuses *)context)->f;
    return arrival_set_is_less(&f->sets, f->keys[before].ready, f->keys[id].ready);
}

static void follows(void *context, int before, int id)
{
    struct reuses *reuses = context;
    const struct region_find *f = reuses->f;
    struct reuse reuse = {.from_region = f->plan->items.items[before].region,
                          .to_region = f->plan->items.items[id].region,
                          .position = f->plan->items.items[before].position,
                          .before = before,
                          .item = id};
    vec_push(&reuses->all, reuse);
}

static int by_regions(const void *a, const void *b)
{
    const struct reuse *x = a, *y = b;
    if (x->from_region != y->from_region)
        return x->from_region < y->from_region ? -1 : 1;
    if (x->to_region != y->to_region)
        return x->to_region < y->to_region ? -1 : 1;
    return x->position > y->position ? -1 : x->position < y->position;
}

/* A region waits as a whole: of those that it follows in another one the last will do. */
static void add_reuses(struct reuses *reuses)
{
    const struct reuse *last = NULL;
    if (reuses->all.n)
        qsort(reuses->all.items, reuses->all.n, sizeof *reuses->all.items, by_regions);
    for (size_t i = 0; i < reuses->all.n; i++) {
        const struct reuse *reuse = &reuses->all.items[i];
        if (last && last->from_region == reuse->from_region && last->to_region == reuse->to_region)
            continue;
        vec_push(&reuses->f->plan->items.items[reuse->item].after, reuse->before);
        last = reuse;
    }
    vec_release(&reuses->all);
}

static void place_all(struct region_find *f)
{
    struct plan *plan = f->plan;
    struct reuses reuses = {.f = f};
    size_t n = plan->items.n + 1, at = 0;
    int n_placings = 0;
    int *region = mem_array(2 * n, sizeof *region), *order = region + n;
    struct placing *placings = mem_array(plan->frames.n, sizeof *placings);
    for (size_t i = 0; i < plan->items.n; i++)
        region[i] = plan->items.items[i].region;
    for (size_t i = 0; i < plan->frames.n; i++) {
        struct plan_frame *frame = &plan->frames.items[i];
        if (frame->has_order)
            continue;
        placings[n_placings++] = (struct placing){.order = order + at,
                                                  .n_order = (int)frame->order.n,
                                                  .bytes = frame->arena_bytes,
                                                  .region = region,
                                                  .may_follow = may_follow,
                                                  .follows = follows,
                                                  .context = &reuses};
        for (size_t k = 0; k < frame->order.n; k++)
            order[at++] = frame->order.items[k].item;
    }
    plan_place_memory(plan, placings, n_placings);
    mem_free(placings);
    mem_free(region);
    add_reuses(&reuses);
}

void region_place(struct region_find *f)
{
    struct plan *plan = f->plan;
    for (size_t i = 0; i < plan->regions.n; i++) {
        struct region *region = &plan->regions.items[i];
        const struct region_item *order = plan->frames.items[region->frame].order.items;
        region->is_cheap = true;
        for (int k = 0; k < region->n && region->is_cheap; k++)
            region->is_cheap = plan->items.items[order[region->first + k].item].is_cheap;
    }
    find_counted(f);
    place_all(f);
}
