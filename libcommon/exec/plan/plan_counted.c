/* SPDX-License-Identifier: Apache-2.0
 *
 * Which values have counted memory, because somebody may have them for longer than the plan knows.
 */
#include "exec/device/pool.h"
#include "exec/plan/plan_steps.h"

static bool keeps(const struct item *item, int input);

/* Whether an iteration keeps what the loop is given. */
static bool loop_keeps(struct while_loop *loop, int input)
{
    struct plan *body = loop->body;
    size_t n = loop->kept ? 0 : body->items.n; /* it is found for all inputs at once */
    if (!loop->kept)
        loop->kept = arena_array(&body->memory, (size_t)loop->n_inputs + 1, sizeof *loop->kept);
    for (size_t i = 0; i < n; i++) {
        const struct item *item = &body->items.items[i];
        for (int k = 0; k < item->n_in; k++) {
            const struct value *root = &body->values.items[plan_root_value(body, item->in[k])];
            int given = root->kind == VALUE_FEED ? loop->given[root->feed] : -1;
            if (given >= 0 && !loop->kept[given])
                loop->kept[given] = keeps(item, k);
        }
    }
    return loop->kept[input];
}

static bool keeps(const struct item *item, int input)
{
    if (item->builtin == BUILTIN_LOOP)
        return loop_keeps(item->state, input);
    return item->node && node_keeps(item->node, input);
}

void plan_count_inputs(struct plan *plan, const struct item *item, bool keeps_all)
{
    for (int k = 0; k < item->n_in; k++) {
        if (item->in[k] < 0 || !(keeps_all || keeps(item, k)))
            continue;
        struct value *root = &plan->values.items[plan_root_value(plan, item->in[k])];
        root->is_counted |= root->kind == VALUE_COMPUTED;
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
    if (!plan->options.device->is_host) {
        plan->pool = pool_new(plan->options.device, true);
        plan->host_pool = pool_new(plan->options.device, false);
        return;
    }
    for (int at = 0; at < plan->n_order; at++) {
        const struct item *item = &plan->items.items[plan->order[at]];
        plan_count_inputs(plan, item,
                          plan->options.shares_fetches && item->builtin == BUILTIN_FETCH);
    }
    count_merged(plan);
    if (count_aliases(plan))
        plan->pool = pool_new(plan->options.device, false);
}
