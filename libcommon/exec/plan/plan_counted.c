/* SPDX-License-Identifier: Apache-2.0
 *
 * Which values have counted memory, because somebody may have them for longer than the plan knows.
 */
#include "exec/device/pool.h"
#include "exec/plan/plan_steps.h"

static bool keeps(const struct item *item, int input)
{
    const struct plan_frame *loop = item->state;
    if (item->builtin == BUILTIN_LOOP)
        return loop->kept[input];
    return item->node && node_keeps(item->node, input);
}

void plan_count_inputs(struct plan *plan, const struct item *item, bool keeps_all)
{
    for (int k = 0; k < item->n_in; k++) {
        bool is_kept = item->in[k] >= 0 && keeps(item, k);
        if (item->in[k] < 0 || !(keeps_all || is_kept))
            continue;
        struct value *root = &plan->values.items[plan_root_value(plan, item->in[k])];
        root->is_counted |= root->kind == VALUE_COMPUTED;
        if (is_kept && root->kind == VALUE_CARRIED)
            plan->frames.items[item->frame].kept[root->feed] = true;
    }
}

void plan_count_uses(struct plan *plan)
{
    for (size_t i = 0; i < plan->items.n; i++) {
        const struct item *item = &plan->items.items[i];
        for (int k = 0; k < item->n_in && !item->removed; k++)
            if (item->in[k] >= 0)
                plan->values.items[item->in[k]].n_uses++;
    }
}

/* What a Merge brings is the memory of an input. */
static void count_merged(struct plan *plan)
{
    for (int at = plan->n_order; plan->has_branches && at-- > 0;) {
        const struct item *item = &plan->items.items[plan->order[at]];
        if (item->flow == FLOW_MERGE && plan->values.items[item->out[0]].is_counted)
            plan_count_inputs(plan, item, true);
    }
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
        value->is_counted |=
            value->alias_of >= 0 && (root->is_counted || root->kind == VALUE_CARRIED);
        any |= value->is_counted;
    }
    return any;
}

/* On a device with memory of its own what is kept is copied. */
void plan_find_counted(struct plan *plan)
{
    if (!plan->options.device->is_host) {
        plan->pool = pool_new(plan->options.device, true);
        plan->host_pool = pool_new(plan->options.device, false);
        return;
    }
    for (int at = plan->n_order; at-- > 0;) { /* loops before what has them done */
        const struct item *item = &plan->items.items[plan->order[at]];
        bool hands_on = item->frame && item->node && node_is(item->node, "NextIteration");
        plan_count_inputs(plan, item, hands_on);
    }
    count_merged(plan);
    if (count_aliases(plan) && !plan->pool)
        plan->pool = pool_new(plan->options.device, false);
}
