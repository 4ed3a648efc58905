/* SPDX-License-Identifier: Apache-2.0
 *
 * Where what regions compute lies: in an arena of each iteration of a frame, but for what others
 * may keep, and for what little regions of loops compute.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "exec/device/pool.h"
#include "exec/plan/region_private.h"

/* ---- what others may keep ---- */

static void count_inputs(struct plan *plan, const struct item *item, bool keeps_all)
{
    const struct plan_frame *loop = item->builtin == BUILTIN_LOOP ? item->state : NULL;
    for (int k = 0; k < item->n_in; k++) {
        bool is_kept = loop ? loop->kept[k] : item->node && node_keeps(item->node, k);
        if (item->in[k] < 0 || !(keeps_all || is_kept))
            continue;
        struct value *root = &plan->values.items[plan_root_value(plan, item->in[k])];
        root->is_counted |= root->kind == VALUE_COMPUTED;
        if (is_kept && root->kind == VALUE_CARRIED)
            plan->frames.items[item->frame].kept[root->feed] = true;
    }
}

/* Values that a point gets, that are fetched or copied in between, or that an op keeps, may be
 * needed for longer than anybody knows here; and an iteration hands on what the next one has. */
static void count_kept(struct plan *plan, const struct item *item)
{
    bool keeps_all =
        !plan_has_order(plan, item->frame)
            ? item->is_point || item->builtin == BUILTIN_FETCH || plan_is_copied(plan, item)
            : item->frame && item->node && node_is(item->node, "NextIteration");
    count_inputs(plan, item, keeps_all);
}

static void count_uses(struct plan *plan)
{
    vec_each(value, &plan->values)
        value->n_uses = 0;
    vec_each(item, &plan->items) {
        for (int k = 0; k < item->n_in && !item->removed; k++)
            if (item->in[k] >= 0)
                plan->values.items[item->in[k]].n_uses++;
    }
}

#define GIVEN_BYTES (64 << 10) /* less is as well copied */

/* A value that is assigned to a variable which nothing else of the plan uses, as an initial one is,
 * becomes that variable's memory, as does what the value is made over or seen through: there is no
 * room for both beside each other in a process whose variables fill its memory. */
static void count_given(struct plan *plan, const struct item *item)
{
    struct value *values = plan->values.items;
    int v = values[item->in[0]].n_uses == 1 ? item->in[1] : -1;
    while (v >= 0 && values[v].n_uses == 1 && values[v].kind == VALUE_COMPUTED &&
           shape_bytes(&values[v].shape, values[v].type) >= GIVEN_BYTES) {
        values[v].is_counted = values[v].is_given = true;
        item = &plan->items.items[values[v].item];
        bool is_over = item->output_forward == FORWARD_REUSE && item->out[0] == v;
        v = is_over ? item->in[item->output_from] : values[v].alias_of;
    }
}

/* In a whole plan on a device with memory of its own what is kept is copied. Else what a Merge
 * brings is the memory of an input, and what is the same memory as something counted is counted
 * with it. */
void plan_find_counted(struct plan *plan)
{
    const struct device *device = plan->options.device;
    bool any = !plan->is_whole || !device->is_host, counts = !plan->is_whole || device->is_host;
    for (int at = plan->n_order; counts && at-- > 0;) /* loops before what has them done */
        count_kept(plan, &plan->items.items[plan->order[at]]);
    count_uses(plan);
    vec_each(item, &plan->items) {
        if (item->region < 0 && !item->removed)
            count_kept(plan, item);
        if (device->is_host && !item->removed && item->node && node_has(item->node, OP_OVERWRITES))
            count_given(plan, item);
    }
    for (int at = plan->n_order; plan->has_branches && at-- > 0;) {
        const struct item *item = &plan->items.items[plan->order[at]];
        if (item->flow == FLOW_MERGE && plan->values.items[item->out[0]].is_counted)
            count_inputs(plan, item, true);
    }
    for (size_t v = 0; v < plan->values.n && counts; v++) {
        struct value *value = &plan->values.items[v];
        const struct value *root = &plan->values.items[plan_root_value(plan, (int)v)];
        if (value->kind != VALUE_COMPUTED)
            continue;
        value->is_counted |=
            value->alias_of >= 0 && (root->is_counted || root->kind == VALUE_CARRIED);
        any |= value->is_counted;
    }
    if (any)
        plan->pool = pool_new(plan->options.device, true);
    if (!device->is_host)
        plan->host_pool = pool_new(plan->options.device, false);
}

/* ---- what has a place ---- */

/* In a loop a region that does little would keep memory for each iteration that runs ahead. A copy
 * to the device may still run when its only consumer turned out to be dead. */
static bool has_no_place(const struct region_find *f, const struct item *item, int v)
{
    const struct value *value = &f->plan->values.items[v];
    const struct region *r = &f->plan->regions.items[item->region];
    return value->is_outgoing || value->alias_input >= 0 || value->type == STRING ||
           !shape_is_known(&value->shape) || plan_is_copied(f->plan, item) ||
           (r->frame && r->is_cheap && !item->scratch_bytes) || f->alone;
}

/* Finds the values that have no place in an arena. */
static void find_unplaced(const struct region_find *f)
{
    struct plan *plan = f->plan;
    count_uses(plan);
    vec_each(item, &plan->items) {
        for (int k = 0; k < item->n_out && !item->removed && item->region >= 0; k++)
            if (!plan_has_order(plan, item->frame) && has_no_place(f, item, item->out[k]))
                plan->values.items[item->out[k]].is_counted = true;
    }
}

bool region_may_follow(const struct region_find *f, int before, int id)
{
    return arrival_set_is_less(&f->sets, f->keys[before].ready, f->keys[id].ready);
}

void region_follow(struct region_find *f, int before, int id)
{
    struct reuse reuse = {.from_region = f->plan->items.items[before].region,
                          .to_region = f->plan->items.items[id].region,
                          .position = f->plan->items.items[before].position,
                          .before = before,
                          .item = id};
    vec_push(&f->reuses, reuse);
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
static void add_reuses(struct region_find *f)
{
    const struct reuse *last = NULL;
    if (f->reuses.n)
        qsort(f->reuses.items, f->reuses.n, sizeof *f->reuses.items, by_regions);
    vec_each(reuse, &f->reuses) {
        if (last && last->from_region == reuse->from_region && last->to_region == reuse->to_region)
            continue;
        vec_push(&f->plan->items.items[reuse->item].after, reuse->before);
        last = reuse;
    }
    vec_release(&f->reuses);
}

void region_place(struct region_find *f)
{
    find_unplaced(f);
    plan_place_memory(f);
    add_reuses(f);
}
