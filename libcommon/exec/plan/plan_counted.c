/* SPDX-License-Identifier: Apache-2.0
 *
 * Which values have counted memory, because somebody may have them for longer than the plan knows.
 */
#include "exec/device/pool.h"
#include "exec/plan/plan_internal.h"

static void count_root(struct plan *plan, int v)
{
    struct value *root = &plan->values.items[plan_root_value(plan, v)];
    root->is_counted |= root->kind == VALUE_COMPUTED && !root->layout;
}

void plan_count_kept(struct plan *plan, const struct item *item)
{
    for (int k = 0; item->node && k < item->n_in; k++)
        if (item->in[k] >= 0 && node_keeps(item->node, k))
            plan->values.items[plan_root_value(plan, item->in[k])].is_counted = true;
}

static bool has_counted_memory(const struct plan *plan, const struct value *value)
{
    return value->is_counted || (value->kind == VALUE_FEED && plan->options.shares_fetches);
}

/* What is the same memory as something counted is counted with it. */
static bool count_aliases(struct plan *plan)
{
    bool any = false;
    for (size_t v = 0; v < plan->values.n; v++) {
        struct value *value = &plan->values.items[v];
        if (value->kind != VALUE_COMPUTED)
            continue;
        const struct value *root = &plan->values.items[plan_root_value(plan, (int)v)];
        value->is_counted |= value->alias_of >= 0 && has_counted_memory(plan, root);
        any |= value->is_counted;
    }
    return any;
}

/* On a device with memory of its own what is kept is copied. */
void plan_find_counted(struct plan *plan)
{
    if (!plan->options.device->is_host)
        return;
    for (int at = 0; at < plan->n_order; at++) {
        const struct item *item = &plan->items.items[plan->order[at]];
        bool is_shared = item->code == &plan_fetch_code && plan->options.shares_fetches;
        for (int k = 0; k < item->n_in; k++)
            if (item->in[k] >= 0 && (is_shared || (item->node && node_keeps(item->node, k))))
                count_root(plan, item->in[k]);
    }
    if (count_aliases(plan))
        plan->counted = pool_new(plan->options.device, false);
}
