/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has a variable itself, rather than its value, and who changes it.
 */
#include "graph/access_nodes.h"
#include "pass/part/part.h"

bool part_is_variable(const struct graph *graph, struct edge edge)
{
    const struct node *from = graph_node(graph, edge.node);
    return edge.slot >= 0 && !from->n_inputs && from->outputs[edge.slot].is_ref;
}

bool part_takes_ref(const struct node *node, int input)
{
    return node_takes_ref(node, input);
}

const struct node *part_written(const struct graph *graph, const struct node *node)
{
    if (node_has(node, OP_READS_REF | OP_CONTROL_FLOW | OP_UNINITIALIZED) &&
        !node_has(node, OP_OVERWRITES))
        return NULL;
    for (int i = 0; i < node->n_inputs; i++)
        if (edge_exists(node->inputs[i]) && part_takes_ref(node, i) &&
            part_is_variable(graph, node->inputs[i]))
            return graph_node(graph, node->inputs[i].node);
    return NULL;
}
