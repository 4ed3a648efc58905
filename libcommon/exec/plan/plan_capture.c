/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether all that a step of a whole plan enqueues is the same in every step, so that a device may
 * capture it: only copies of feeds and fetches touch host memory that changes.
 */
#include <stdlib.h>

#include "exec/plan/plan_steps.h"

static bool is_on_host(const struct plan *plan, int v)
{
    return v >= 0 && !plan->values.items[v].on_device;
}

/* What the kernel reads on the host is known when the plan is made, and it makes nothing there. */
static bool is_same_in_all_steps(const struct plan *plan, const struct item *item)
{
    bool same = !(item->flags & KERNEL_UNCAPTURED);
    if (plan_is_copied(plan, item))
        return item->builtin == BUILTIN_FETCH || plan_is_feed_copy(plan, item);
    if (item->builtin == BUILTIN_FETCH)
        return false;
    bool reads = !item->node || !node_has(item->node, OP_SHAPE_ONLY);
    for (int i = 0; i < item->n_in && reads; i++)
        same = same && (!is_on_host(plan, item->in[i]) ||
                        plan->values.items[item->in[i]].kind == VALUE_CONSTANT);
    for (int i = 0; i < item->n_out; i++)
        same = same && !is_on_host(plan, item->out[i]);
    return same;
}

static int by_id(const void *a, const void *b)
{
    const struct variable_lock *x = a, *y = b;
    return x->variable->id < y->variable->id ? -1 : x->variable->id > y->variable->id;
}

static void add_lock(struct plan *plan, const struct variable_lock *lock)
{
    for (size_t i = 0; i < plan->locks.n; i++)
        if (plan->locks.items[i].variable == lock->variable) {
            plan->locks.items[i].write |= lock->write;
            return;
        }
    vec_push(&plan->locks, *lock);
}

void plan_find_captured(struct plan *plan)
{
    const struct device *device = plan->options.device;
    bool same = device->capture && plan->is_on_device && !plan->options.check_numerics;
    for (int at = 0; at < plan->n_order && same; at++) {
        const struct item *item = &plan->items.items[plan->order[at]];
        same = is_same_in_all_steps(plan, item);
        for (size_t i = 0; i < item->take.n; i++)
            add_lock(plan, &item->take.items[i]);
    }
    if (plan->locks.n)
        qsort(plan->locks.items, plan->locks.n, sizeof *plan->locks.items, by_id);
    atomic_init(&plan->is_captured, same);
}
