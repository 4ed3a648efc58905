/* SPDX-License-Identifier: Apache-2.0
 *
 * What has to be over before an item runs, besides what it reads.
 */
#include "base/memory.h"
#include "exec/plan/plan_internal.h"

/* A path of the graph leads there, though not one of the plan. Also to what is copied for the item,
 * as a read of it. */
static void add_follows(struct plan *plan, struct item *item, int before)
{
    vec_push(&item->after, before);
    vec_push(&item->follows, before);
    for (int i = 0; i < item->n_in; i++) {
        int copy = plan_copy_for(plan, item, i);
        if (copy < 0)
            continue;
        vec_push(&plan->items.items[copy].after, before);
        vec_push(&plan->items.items[copy].follows, before);
    }
}

static void add_wish(struct plan *plan, struct item *item, int before)
{
    (void)plan;
    vec_push(&item->wishes, before);
}

static void bind_names(struct plan *plan, int id, const char *attr,
                       void (*add)(struct plan *plan, struct item *item, int before))
{
    struct item *item = &plan->items.items[id];
    const struct attr_value *names = item->node ? node_attr(item->node, attr) : NULL;
    for (int k = 0; names && names->kind == ATTR_LIST_STRING && k < names->n; k++) {
        const struct node *node = graph_find(plan->graph, names->strings[k]);
        int before = node ? plan->item_of[node->id] : -1;
        if (before >= 0 && before != id && !plan->items.items[before].removed)
            add(plan, item, before);
    }
}

/* A Variable has no item that could wait for its control inputs: who has it does. */
void plan_follow_variable(struct plan *plan, int id, int node)
{
    const struct node *variable = graph_node(plan->graph, node);
    for (int i = 0; node_is(variable, "Variable") && i < variable->n_controls; i++) {
        int before = plan->item_of[variable->controls[i]];
        if (before >= 0 && before != id && !plan->items.items[before].removed)
            add_follows(plan, &plan->items.items[id], before);
    }
}

/* Attributes name nodes that are to be over before, dead or alive, if they are in the plan:
 * `_follows` because of a path through other parts, `_after` if nothing speaks against it. */
void plan_bind_after(struct plan *plan)
{
    for (size_t i = 0; i < plan->items.n; i++) {
        const struct node *node = plan->items.items[i].node;
        bind_names(plan, (int)i, "_after", add_wish);
        bind_names(plan, (int)i, "_follows", add_follows);
        for (int k = 0; node && k < node->n_inputs; k++)
            plan_follow_variable(plan, (int)i, node->inputs[k].node);
        for (int k = 0; node && k < node->n_controls; k++)
            plan_follow_variable(plan, (int)i, node->controls[k]);
    }
}
