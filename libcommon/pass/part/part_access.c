/* SPDX-License-Identifier: Apache-2.0
 *
 * Which nodes have a variable itself, rather than its value, and which change it; and reads of
 * variables by nodes that follow other writes than what they have the variable from. In which order
 * all reads and writes come is found when it is known what is run (exec/run/divide.h).
 */
#include "base/memory.h"
#include "graph/access_nodes.h"
#include "pass/part/part_private.h"

bool part_is_variable(const struct graph *graph, struct edge edge)
{
    const struct node *from = graph_node(graph, edge.node);
    return edge.slot >= 0 && !from->n_inputs && from->outputs[edge.slot].is_ref;
}

const struct node *part_written(const struct graph *graph, const struct node *node)
{
    if (node_has(node, OP_READS_REF | OP_CONTROL_FLOW | OP_UNINITIALIZED) &&
        !node_has(node, OP_OVERWRITES))
        return NULL;
    for (int i = 0; i < node->n_inputs; i++)
        if (edge_exists(node->inputs[i]) && node_takes_ref(node, i) &&
            part_is_variable(graph, node->inputs[i]))
            return graph_node(graph, node->inputs[i].node);
    return NULL;
}

int part_variable(const struct cutter *c, struct edge edge)
{
    return access_variable_at(c->from, c->variable, edge);
}

/* A node and the one it has a variable from: their accesses; the second counts as a read, too. */
struct read_source {
    int reader, from;
};
typedef VEC(struct read_source) taking_vec;

static int add_access(struct access_graph *graph, int node, int variable)
{
    struct access access = {.variable = variable, .node = node};
    vec_push(&graph->accesses, access);
    return (int)graph->accesses.n - 1;
}

void part_find_late(struct cutter *c)
{
    size_t n = c->from->nodes.n;
    struct access_graph graph = {.n = (int)n,
                                 .frame = c->frames->frame,
                                 .parent = c->frames->parents,
                                 .n_frames = (int)c->frames->frames.n};
    taking_vec takings = VEC_INIT;
    c->variable = access_variables(c->from, &c->arena);
    c->late = arena_alloc(&c->arena, n + 1);
    graph_each(node, c->from) {
        access_add_node(&graph, c->from, c->variable, node);
        for (int k = 0; k < node->n_inputs; k++) {
            int variable = part_variable(c, node->inputs[k]);
            if (variable < 0 || node_takes_ref(node, k))
                continue;
            struct read_source taking = {add_access(&graph, node->id, variable),
                                         add_access(&graph, node->inputs[k].node, variable)};
            vec_push_in(&c->arena, &takings, taking);
        }
    }
    /* A reader is late if it follows other writes than the node that it has the variable from. */
    int *counts = access_count_writes(&graph);
    vec_each(taking, &takings) {
        int from = graph.accesses.items[taking->from].node;
        if (counts[taking->reader] !=
            counts[taking->from] + (graph_node(c->from, from)->n_inputs &&
                                    !node_has(graph_node(c->from, from), OP_READS_REF)))
            c->late[graph.accesses.items[taking->reader].node] = 1;
    }
    mem_free(counts);
    access_graph_release(&graph);
}
