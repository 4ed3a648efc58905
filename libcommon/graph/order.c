/* SPDX-License-Identifier: Apache-2.0
 *
 * Topological order, ties by id; edges NextIteration -> Merge left out.
 */
#include "graph/graph.h"
#include "graph/topology.h"

int graph_order(const struct graph *graph, int *order, struct error *err)
{
    struct arena memory = ARENA_INIT;
    arc_vec arcs = VEC_INIT;
    const char **names = arena_array(&memory, graph->nodes.n, sizeof *names);
    graph_each(node, graph) {
        names[node->id] = node->name;
        for (int i = 0; i < node->n_inputs + node->n_controls; i++) {
            struct edge edge = node_dependency(node, i);
            if (edge_exists(edge) && !graph_is_back_edge(graph, node, edge))
                vec_push(&arcs, ((struct arc){edge.node, node->id}));
        }
    }
    struct successors next =
        successors_new(&memory, graph->nodes.n, (const arc_vec *[]){&arcs, NULL});
    int code = successors_sort(&next, names, order, err);
    vec_release(&arcs);
    arena_release(&memory);
    return code;
}
