/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has a variable itself, rather than its value.
 */
#include "pass/part/part_private.h"

bool part_is_variable(const struct graph *graph, struct edge edge)
{
    const struct node *from = graph_node(graph, edge.node);
    return edge.slot >= 0 && !from->n_inputs && from->outputs[edge.slot].is_ref;
}

bool part_takes_ref(const struct node *node, int input)
{
    int at = 0;
    for (int i = 0; i < node->op->n_inputs && at <= input; i++) {
        const struct op_arg *arg = &node->op->inputs[i];
        if (arg->type_list_attr >= 0)
            return false;
        int n =
            arg->number_attr < 0 ? 1 : (int)node_int(node, node->op->attrs[arg->number_attr].name);
        if (input < at + n)
            return arg->is_ref;
        at += n;
    }
    return false;
}
