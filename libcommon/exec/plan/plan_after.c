/* SPDX-License-Identifier: Apache-2.0
 *
 * What has to be over before an item runs, besides what it reads.
 */
#include "base/memory.h"
#include "exec/plan/plan_steps.h"

/* A path of the graph leads there, though not one of the plan. Also to what is copied for the item,
 * as a read of it. */
static void add_follows(struct plan *plan, struct item *item, int before)
{
    vec_push(&item->after, before);
    vec_push(&plan->follows, ((struct access_edge){before, (int)(item - plan->items.items)}));
    for (int i = 0; i < item->n_in; i++) {
        int copy = plan_copy_for(plan, item, i);
        if (copy < 0)
            continue;
        vec_push(&plan->items.items[copy].after, before);
        vec_push(&plan->follows, ((struct access_edge){before, copy}));
    }
}

/* `_after` names nodes that are to be over before, dead or alive, if they are in the plan and
 * nothing speaks against it. */
static void bind_wishes(struct plan *plan, struct item *item)
{
    const struct attr_value *names = item->node ? node_attr(item->node, "_after") : NULL;
    for (int k = 0; names && names->kind == ATTR_LIST_STRING && k < names->n; k++) {
        const struct node *node = graph_find(plan->graph, names->strings[k]);
        int before = node ? plan->item_of[node->id] : -1, id = (int)(item - plan->items.items);
        if (before >= 0 && before != id && !item->removed && !plan->items.items[before].removed)
            vec_push(&plan->wishes, ((struct access_edge){before, id}));
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

void plan_bind_after(struct plan *plan)
{
    for (size_t i = 0; i < plan->items.n; i++) {
        const struct node *node = plan->items.items[i].node;
        bind_wishes(plan, &plan->items.items[i]);
        for (int k = 0; node && k < node->n_inputs; k++)
            plan_follow_variable(plan, (int)i, node->inputs[k].node);
        for (int k = 0; node && k < node->n_controls; k++)
            plan_follow_variable(plan, (int)i, node->controls[k]);
    }
}
