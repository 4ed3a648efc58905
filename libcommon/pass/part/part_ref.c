/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has a variable itself, rather than its value.
 */
#include "pass/part/part.h"

bool part_is_variable(const struct graph *graph, struct edge edge)
{
    const struct node *from = graph_node(graph, edge.node);
    return edge.slot >= 0 && !from->n_inputs && from->outputs[edge.slot].is_ref;
}

bool part_takes_ref(const struct node *node, int input)
{
    return node->op->inputs[node_argument(node, node->op->inputs, &input)].is_ref;
}
