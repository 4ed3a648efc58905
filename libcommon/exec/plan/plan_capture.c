/* SPDX-License-Identifier: Apache-2.0
 *
 * Segments: items of a region, one behind the other, of which all that a step enqueues is the same
 * in every step, so that a device may capture it: only copies of feeds and fetches touch host
 * memory that changes. A segment ends where others are told of what it has made, as what is sent or
 * reduced leaves before the rest is computed. Values that it takes from elsewhere have one place in
 * all steps (run/captured.c).
 */
#include "exec/plan/plan_steps.h"
#include "exec/plan/region.h"

static bool is_on_host(const struct plan *plan, int v)
{
    return v >= 0 && !plan->values.items[v].on_device;
}

/* On the device it is of a known size, and not of a loop's iteration. */
static bool has_one_place(const struct plan *plan, int v)
{
    const struct value *value = &plan->values.items[v];
    bool is_of_root = value->item < 0 || plan->items.items[value->item].frame == FRAME_ROOT;
    return is_of_root && (value->is_ref || shape_is_known(&value->shape));
}

/* Another view of what has no place in an arena goes with that to who gets it. */
static bool is_view(const struct plan *plan, const struct item *item, int v)
{
    const struct value *value = &plan->values.items[v];
    return !plan->is_whole && value->alias_input >= 0 &&
           plan->values.items[item->in[value->alias_input]].kind != VALUE_VARIABLE;
}

/* The kernel's inputs on the host are known when the plan is made, and it makes nothing there. */
static bool is_same_in_all_steps(const struct plan *plan, const struct item *item)
{
    bool same = !(item->flags & KERNEL_UNCAPTURED);
    for (int i = 0; i < item->n_in && same; i++)
        same = item->in[i] < 0 || has_one_place(plan, item->in[i]);
    if (plan_is_copied(plan, item))
        return same && (item->builtin == BUILTIN_FETCH || plan_is_feed_copy(plan, item));
    if (item->builtin == BUILTIN_FETCH)
        return false;
    bool reads = !item->node || !node_has(item->node, OP_SHAPE_ONLY);
    for (int i = 0; i < item->n_in && reads; i++)
        same = same && (!is_on_host(plan, item->in[i]) ||
                        plan->values.items[item->in[i]].kind == VALUE_CONSTANT);
    for (int i = 0; i < item->n_out; i++)
        same = same && !is_on_host(plan, item->out[i]) && has_one_place(plan, item->out[i]) &&
               !is_view(plan, item, item->out[i]);
    return same;
}

/* How many items from there on are one; 0: none. A whole plan's items share their locks: it is
 * captured as a whole. Else one kernel is launched as fast by itself. */
static int find_segment(const struct plan *plan, const struct region *region, int first)
{
    int at = first, n_captured = 0;
    while (at < region->n) {
        const struct item *item = &plan->items.items[region->items[at].item];
        if (!is_same_in_all_steps(plan, item))
            break;
        n_captured += !plan_is_feed_copy(plan, item);
        if (region_tells(&region->items[at++]))
            break;
    }
    bool is_one = plan->is_whole ? at == region->n : n_captured > 1;
    return is_one ? at - first : 0;
}

void plan_find_segments(struct plan *plan)
{
    const struct device *device = plan->options.device;
    if (!device->capture || !plan->is_on_device || plan->options.check_numerics ||
        plan->keeps_reads)
        return;
    vec_each(region, &plan->regions) {
        struct region_item *items = plan->frames.items[region->frame].order.items + region->first;
        for (int at = 0, n; at < region->n && region->frame == FRAME_ROOT; at += n ? n : 1) {
            struct plan_segment segment = {.items = &items[at], .first = region->first + at};
            if (!(segment.n = n = find_segment(plan, region, at)))
                continue;
            plan_find_segment_locks(plan, &segment);
            vec_push(&plan->segments, segment);
            items[at].segment = (int)plan->segments.n;
        }
    }
    plan->frames.items[FRAME_ROOT].borrows |= plan->segments.n > 0;
}
