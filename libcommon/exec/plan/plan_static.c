/* SPDX-License-Identifier: Apache-2.0
 *
 * Which nodes can be planned for, and which plans have a fixed order.
 */
#include "exec/plan/plan_steps.h"

/* Where the output is: constants and what is fed, on the host. */
static bool is_made_on_device(const struct plan *plan, struct edge edge)
{
    const struct node *node = graph_node(plan->graph, edge.node);
    if (node_is(node, "Const") || edge_map_get(&plan->fed, edge) >= 0)
        return false;
    const struct kernel_row *row =
        kernel_find(plan->options.kernels, node, plan->options.device->type);
    return node_is(node, "Variable") || (row && plan_gives_on_device(plan, row, node, edge.slot));
}

/* Returns whether the host needs what the device computes: only running tells when that is there.
 * */
static bool host_waits(const struct plan *plan, const struct node *node,
                       const struct kernel_row *row)
{
    if (plan->options.device->is_host || !row || node_has(node, OP_SHAPE_ONLY))
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (!plan_takes_on_device(plan, row, node, i) && is_made_on_device(plan, node->inputs[i]))
            return true;
    return false;
}

bool plan_can_place(const struct plan *plan, const struct node *node)
{
    for (int k = 0; k < node->n_outputs; k++) {
        const struct node_output *output = &node->outputs[k];
        if (!output->is_ref && !node_is(node, "Const") &&
            (!shape_is_known(&output->shape) || output->type == STRING))
            return false;
    }
    const struct kernel_row *row =
        kernel_find(plan->options.kernels, node, plan->options.device->type);
    return !(row && row->flags & KERNEL_ASYNC) && !host_waits(plan, node, row);
}

static bool is_of_branch(const struct node *node)
{
    return node_is(node, "Switch") || node_is(node, "Merge");
}

/* A fixed order with planned memory will do unless something waits. In it items of a branch that is
 * not taken are passed over, where the host decides on that. */
void plan_find_static(struct plan *plan)
{
    bool is_whole = plan->options.cut == CUT_WHOLE, in_loops = false, outside = false;
    for (int i = 0; i < (int)plan->graph->nodes.n; i++) {
        const struct node *node = graph_node(plan->graph, i);
        bool is_flow = node_has(node, OP_CONTROL_FLOW) && !plan_entered_loop(plan, node);
        if (plan->frames.items[plan_frame_of(plan, node)].is_item) {
            in_loops |= plan->graph_frames->variable[i] < 0 && is_of_branch(node);
            continue;
        }
        is_whole = is_whole && plan_can_place(plan, node) &&
                   (!is_flow || (plan->options.device->is_host && is_of_branch(node)));
        outside |= is_flow;
    }
    plan->is_whole = is_whole;
    plan->has_branches = (is_whole && outside) || in_loops;
    for (size_t i = 0; i < plan->frames.n; i++)
        plan->frames.items[i].has_order = plan->frames.items[i].borrows =
            is_whole || plan->frames.items[i].is_item;
}
