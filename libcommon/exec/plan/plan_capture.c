/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether all that a step of a whole plan enqueues is the same in every step, so that a device may
 * capture it: only copies of feeds and fetches touch host memory that changes.
 */
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

void plan_find_captured(struct plan *plan)
{
    const struct device *device = plan->options.device;
    bool same = device->capture && plan->is_on_device && !plan->options.check_numerics;
    for (int at = 0; at < plan->n_order && same; at++)
        same = is_same_in_all_steps(plan, &plan->items.items[plan->order[at]]);
    atomic_init(&plan->is_captured, same);
}
