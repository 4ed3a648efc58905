/* SPDX-License-Identifier: Apache-2.0
 *
 * What is to be done at each position of a region, found when edges are known.
 */
#include "base/memory.h"
#include "exec/plan/region_private.h"

#define LARGE_BYTES ((int64_t)1 << 20) /* that it is worth to wait for the memory of others */

static bool is_large_outgoing(const struct value *value)
{
    return value->is_outgoing && value->alias_input < 0 && shape_is_known(&value->shape) &&
           shape_bytes(&value->shape, value->type) >= LARGE_BYTES;
}

static void describe(struct plan *plan, struct region_item *at)
{
    const struct item *item = &plan->items.items[at->item];
    for (int i = 0; i < item->n_in; i++) {
        const struct value *value = &plan->values.items[item->in[i]];
        bool is_ref = item->refs && item->refs[i], is_seen = item->seen && item->seen[i];
        at->gathers |= is_seen || !(is_ref || region_has_input(plan, item, i));
        at->looks |= is_seen || (value->kind == VALUE_VARIABLE && !is_ref);
    }
    at->leads = item->n_edges > 0;
    at->locks = item->locks.n > 0;
    for (int i = 0; i < item->n_out; i++)
        at->makes_outgoing |= is_large_outgoing(&plan->values.items[item->out[i]]);
}

/* Returns whether it is given what all workers have brought. */
static bool frees(const struct plan *plan, const struct region_item *at)
{
    const struct item *item = &plan->items.items[at->item];
    for (int i = 0; i < item->n_in; i++) {
        int from = plan_maker(plan, item, i);
        const struct node *node = from < 0 ? NULL : plan->items.items[from].node;
        if (node && node_round(node) == ROUND_REDUCE)
            return true;
    }
    return false;
}

/* Each output that is not placed is let go of after the last item of its region that needs it;
 * `last` is by value. */
static void find_drops(struct plan *plan, struct plan_frame *frame, int *last)
{
    for (size_t at = 0; at < frame->order.n; at++) {
        int id = frame->order.items[at].item;
        const struct item *item = &plan->items.items[id];
        for (int i = 0; i < item->n_out; i++)
            last[item->out[i]] = (int)at;
        for (int i = 0; i < item->n_in; i++)
            if (region_has_made(plan, item->in[i], item->region))
                last[item->in[i]] = (int)at;
    }
    for (size_t at = 0; at < frame->order.n; at++) {
        const struct item *item = &plan->items.items[frame->order.items[at].item];
        bool is_point = plan->regions.items[item->region].is_point;
        for (int i = 0; i < item->n_out && !is_point; i++) {
            int v = item->out[i];
            struct region_item *where = &frame->order.items[last[v]];
            if (region_is_placed(plan, v) || plan->values.items[v].is_ref)
                continue;
            plan->next_drop[v] = where->drops ? where->first_drop : -1;
            where->first_drop = v;
            where->drops = true;
        }
    }
}

static void describe_region(struct plan *plan, struct region *region)
{
    struct region_item *first = plan->frames.items[region->frame].order.items + region->first;
    bool is_cheap = true;
    if (region->is_point) {
        describe(plan, first);
        first->is_point = first->leads = first->rest_is_cheap = region->lets_go = true;
        region->moves = item_moves(&plan->items.items[first->item]);
        return;
    }
    region->is_empty = true;
    for (int k = region->n; k-- > 0;) {
        const struct item *item = &plan->items.items[first[k].item];
        describe(plan, &first[k]);
        region->leads |= first[k].leads;
        region->frees |= frees(plan, &first[k]);
        region->is_empty &= (item->flags & KERNEL_EMPTY) != 0;
        region->fetches |= item->builtin == BUILTIN_FETCH;
        for (int i = 0; first[k].leads && i < item->n_out; i++)
            region->lets_go |= !region_is_placed(plan, item->out[i]);
        first[k].rest_is_cheap = is_cheap;
        is_cheap = is_cheap && item->is_cheap;
    }
}

/* Where what follows on a value that has come back leaves: the next piece of it, which waits for no
 * other region, but for an item of it. */
static void find_relieved(struct plan *plan)
{
    bool any = false;
    vec_each(region, &plan->regions) {
        for (int k = 0; region->frees && k < region->n; k++)
            any |= region->items[k].makes_outgoing;
    }
    vec_each(region, &plan->regions) {
        struct region_item *first = plan->frames.items[region->frame].order.items + region->first;
        bool relieves = !region->is_point && !plan_has_order(plan, region->frame);
        for (int k = 0; k < region->n && relieves; k++)
            first[k].is_relieved =
                first[k].makes_outgoing || (any && !plan->items.items[first[k].item].is_cheap);
    }
}

void region_prepare(struct plan *plan)
{
    int *last = mem_array(plan->values.n + 1, sizeof *last);
    plan->next_drop = arena_array(&plan->memory, plan->values.n + 1, sizeof *plan->next_drop);
    for (size_t i = 0; i < plan->frames.n; i++)
        if (!plan_has_order(plan, (int)i))
            find_drops(plan, &plan->frames.items[i], last);
    for (size_t i = 0; i < plan->regions.n; i++)
        if (!plan_has_order(plan, plan->regions.items[i].frame))
            describe_region(plan, &plan->regions.items[i]);
    find_relieved(plan);
    mem_free(last);
}
