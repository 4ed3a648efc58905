/* SPDX-License-Identifier: Apache-2.0
 *
 * The variables that an item locks before it runs, and releases after it.
 *
 * In a dynamic plan an item releases what it has locked; a plan that only reads, and never waits
 * for the outside, holds all its locks as long as its step lasts. In a whole plan consecutive reads
 * of a variable share one lock, and a write has another, so that steps may overlap. There steps
 * cannot deadlock because a step that holds a variable waits only for variables with larger ids: a
 * lock that would be taken while one of a larger id is held is taken earlier, together with that
 * one.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "exec/plan/plan_steps.h"
#include "exec/plan/region.h"

static int by_id(const void *a, const void *b)
{
    const struct variable_lock *x = a, *y = b;
    if (x->variable->id != y->variable->id)
        return x->variable->id < y->variable->id ? -1 : 1;
    return x->from != y->from ? x->from - y->from : (int)y->write - (int)x->write;
}

/* Keeps one lock for each variable, by id; a write covers the reads of the same item. */
static void sort_locks(variable_lock_vec *locks)
{
    size_t n = 0;
    if (locks->n)
        qsort(locks->items, locks->n, sizeof *locks->items, by_id);
    for (size_t i = 0; i < locks->n; i++)
        if (!n || locks->items[i].variable != locks->items[n - 1].variable)
            locks->items[n++] = locks->items[i];
    locks->n = n;
}

static void add_locks(struct plan *plan, const variable_lock_vec *more, variable_lock_vec *locks)
{
    vec_each(lock, more) {
        vec_push_in(&plan->memory, locks, *lock);
    }
}

/* ---- of a whole plan ---- */

/* Returns the last position up to `position` at which no lock is held from before: the wanted lock
 * must be taken there. */
static int begin_of(int *begin, int position)
{
    while (begin[position] != position)
        position = begin[position] = begin[begin[position]];
    return position;
}

/* Makes spans of the locks of one variable: consecutive reads without a write between them are one.
 * A span that begins while a lock of a larger id is held is hoisted; those that overlap then are
 * joined. What became part of another one has no variable any more. */
static void join_locks(struct variable_lock *locks, struct variable_lock *end, int *begin)
{
    struct variable_lock *span = NULL;
    bool reads = false;
    for (struct variable_lock *lock = locks; lock < end; lock++) {
        bool goes_on = reads && !lock->write;
        reads = !lock->write;
        lock->from = begin_of(begin, lock->from);
        if (!goes_on && !(span && span->to >= lock->from)) {
            span = lock;
            continue;
        }
        span->to = lock->to;
        span->write |= lock->write;
        lock->variable = NULL;
    }
}

/* Takes over the items' own locks. Only larger ids move a span, so each is final when the next
 * smaller id is looked at. `begin` is a union-find over positions; one with a lock held is joined
 * to the one before it. */
static void find_spans(struct plan *plan)
{
    struct region_item *order = plan->frames.items[0].order.items;
    struct arena memory = ARENA_INIT;
    variable_lock_vec locks = VEC_INIT;
    int *begin = arena_array(&memory, (size_t)plan->n_order + 1, sizeof *begin);
    for (int position = 0; position < plan->n_order; position++) {
        struct item *item = &plan->items.items[plan->order[position]];
        begin[position] = position;
        vec_each(lock, &item->locks) {
            lock->from = lock->to = position;
            vec_push_in(&memory, &locks, *lock);
        }
        item->locks.n = 0;
    }
    if (locks.n)
        qsort(locks.items, locks.n, sizeof *locks.items, by_id);
    for (struct variable_lock *all = locks.items, *end = all + locks.n, *first; end > all;
         end = first) {
        for (first = end - 1; first > all && first[-1].variable == end[-1].variable;)
            first--;
        join_locks(first, end, begin);
        for (struct variable_lock *span = first; span < end; span++)
            for (int at = span->to; span->variable && (at = begin_of(begin, at)) > span->from;)
                begin[at] = at - 1;
    }
    vec_each(span, &locks) {
        if (!span->variable)
            continue;
        vec_push_in(&plan->memory, &plan->items.items[plan->order[span->from]].locks, *span);
        vec_push_in(&plan->memory, &plan->items.items[plan->order[span->to]].gives, *span);
        order[span->from].locks = order[span->to].locks = true;
    }
    arena_release(&memory);
}

/* ---- of any plan ---- */

/* If a dynamic plan only reads, the locks of all items become those of the step. */
void plan_find_locks(struct plan *plan)
{
    plan->keeps_reads = !plan->is_whole;
    vec_each(item, &plan->items) {
        plan->keeps_reads &= !(item->flags & KERNEL_ASYNC);
        for (size_t i = 0; i < item->uses.n && !item->removed; i++) {
            const struct use *use = &item->uses.items[i];
            struct variable_lock lock = {.variable = use->variable, .write = use->write};
            vec_push_in(&plan->memory, &item->locks, lock);
            plan->keeps_reads &= !use->write;
        }
        sort_locks(&item->locks);
    }
    if (plan->is_whole)
        find_spans(plan);
    for (size_t i = 0; plan->keeps_reads && i < plan->items.n; i++) {
        add_locks(plan, &plan->items.items[i].locks, &plan->locks);
        plan->items.items[i].locks.n = 0;
    }
    sort_locks(&plan->locks);
}

/* ---- captured segments ---- */

/* A segment is a run of items of a region that enqueue the same work in every step, so that a
 * device may capture it: only copies of feeds and fetches touch host memory that changes. A segment
 * ends where other regions are told of its outputs, since values to be sent or reduced leave before
 * the rest is computed. Values that it takes from elsewhere have one place in all steps
 * (run/captured.c). */

static bool is_on_host(const struct plan *plan, int v)
{
    return v >= 0 && !plan->values.items[v].on_device;
}

/* Returns whether its size on the device is known, and it is not made by a loop's iteration. */
static bool has_one_place(const struct plan *plan, int v)
{
    const struct value *value = &plan->values.items[v];
    bool is_of_root = value->item < 0 || plan->items.items[value->item].frame == FRAME_ROOT;
    return is_of_root && (value->is_ref || shape_is_known(&value->shape));
}

/* The kernel's inputs in host memory must be constants, and it must have no outputs there. A view
 * of a value without a place in an arena is passed on along with that value. */
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
    for (int i = 0; i < item->n_out; i++) {
        int alias = plan->values.items[item->out[i]].alias_input;
        bool is_view = !plan->is_whole && alias >= 0 &&
                       plan->values.items[item->in[alias]].kind != VALUE_VARIABLE;
        same = same && !is_view && !is_on_host(plan, item->out[i]) &&
               has_one_place(plan, item->out[i]);
    }
    return same;
}

/* How many items from there on form a segment; 0: none. A whole plan's items share their locks: it
 * is captured as a whole. Elsewhere a single kernel is launched as fast by itself. */
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
            for (int i = at; i < at + n; i++)
                add_locks(plan, &plan->items.items[items[i].item].locks, &segment.locks);
            sort_locks(&segment.locks);
            vec_push_in(&plan->memory, &plan->segments, segment);
            items[at].segment = (int)plan->segments.n;
        }
    }
    plan->frames.items[FRAME_ROOT].borrows |= plan->segments.n > 0;
}
