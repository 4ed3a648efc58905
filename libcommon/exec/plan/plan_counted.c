/* SPDX-License-Identifier: Apache-2.0
 *
 * Which values have counted memory, because somebody may have them for longer than the plan knows.
 */
#include "exec/device/pool.h"
#include "exec/plan/plan_steps.h"

void plan_count_inputs(struct plan *plan, const struct item *item, bool keeps_all)
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

/* On a device with memory of its own what is kept is copied. Else an iteration hands on what the
 * next one has, what a Merge brings is the memory of an input, and what is the same memory as
 * something counted is counted with it. */
void plan_find_counted(struct plan *plan)
{
    bool any = false;
    if (!plan->options.device->is_host) {
        plan->pool = pool_new(plan->options.device, true);
        plan->host_pool = pool_new(plan->options.device, false);
        return;
    }
    for (int at = plan->n_order; at-- > 0;) { /* loops before what has them done */
        const struct item *item = &plan->items.items[plan->order[at]];
        plan_count_inputs(plan, item,
                          item->frame && item->node && node_is(item->node, "NextIteration"));
    }
    for (int at = plan->n_order; plan->has_branches && at-- > 0;) {
        const struct item *item = &plan->items.items[plan->order[at]];
        if (item->flow == FLOW_MERGE && plan->values.items[item->out[0]].is_counted)
            plan_count_inputs(plan, item, true);
    }
    for (size_t v = 0; v < plan->values.n; v++) {
        struct value *value = &plan->values.items[v];
        const struct value *root = &plan->values.items[plan_root_value(plan, (int)v)];
        if (value->kind != VALUE_COMPUTED)
            continue;
        value->is_counted |=
            value->alias_of >= 0 && (root->is_counted || root->kind == VALUE_CARRIED);
        any |= value->is_counted;
    }
    if (any && !plan->pool)
        plan->pool = pool_new(plan->options.device, false);
}
