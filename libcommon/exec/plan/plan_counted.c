/* SPDX-License-Identifier: Apache-2.0
 *
 * Which values have counted memory, because somebody may have them for longer than the plan knows.
 */
#include "exec/device/pool.h"
#include "exec/plan/plan_steps.h"

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

/* What a point gets, what is fetched or copied in between, and what an op keeps, may be needed for
 * longer than anybody knows here; and an iteration hands on what the next one has. */
static void count_kept(struct plan *plan, const struct item *item)
{
    bool keeps_all =
        !plan_has_order(plan, item->frame)
            ? item->is_point || item->builtin == BUILTIN_FETCH || plan_is_copied(plan, item)
            : item->frame && item->node && node_is(item->node, "NextIteration");
    count_inputs(plan, item, keeps_all);
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
    for (size_t i = 0; i < plan->items.n; i++)
        if (plan->items.items[i].region < 0 && !plan->items.items[i].removed)
            count_kept(plan, &plan->items.items[i]);
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
