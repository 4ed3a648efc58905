/* SPDX-License-Identifier: Apache-2.0
 *
 * What has to be over before an item runs, besides what it reads.
 */
#include "base/memory.h"
#include "exec/plan/plan_steps.h"

/* A Variable has no item that could wait for its control inputs: who has it does, and what is
 * copied for that as a read of it. A path of the graph leads there, though not one of the plan. */
void plan_follow_variable(struct plan *plan, int id, int node)
{
    const struct node *variable = graph_node(plan->graph, node);
    const struct item *item = &plan->items.items[id];
    for (int i = 0; node_is(variable, "Variable") && i < variable->n_controls; i++) {
        int before = plan->item_of[variable->controls[i]];
        if (before < 0 || before == id || plan->items.items[before].removed)
            continue;
        for (int k = -1; k < item->n_in; k++) {
            int waits = k < 0 ? id : plan_copy_for(plan, item, k);
            if (waits < 0)
                continue;
            vec_push(&plan->items.items[waits].after, before);
        }
    }
}

/* `_after` names nodes that are to be over before, dead or alive, if they are in the plan and
 * nothing speaks against it. */
void plan_bind_after(struct plan *plan)
{
    for (int i = 0; i < (int)plan->items.n; i++) {
        const struct node *node = plan->items.items[i].node;
        const struct attr_value *names = node ? node_attr(node, "_after") : NULL;
        bool wishes = names && names->kind == ATTR_LIST_STRING && !plan->items.items[i].removed;
        for (int k = 0; wishes && k < names->n; k++) {
            const struct node *named = graph_find(plan->graph, names->strings[k]);
            int before = named ? plan->item_of[named->id] : -1;
            if (before >= 0 && before != i && !plan->items.items[before].removed)
                vec_push(&plan->wishes, ((struct access_edge){before, i}));
        }
        for (int k = 0; node && k < node->n_inputs + node->n_controls; k++)
            plan_follow_variable(plan, i, node_dependency(node, k).node);
    }
}
