/* SPDX-License-Identifier: Apache-2.0
 *
 * Traversal of a graph along its edges, each node once however many edges lead to it: the stack has
 * room for every node, and a node is marked as seen when it is pushed.
 */
#ifndef TF_GRAPH_WALK_H
#define TF_GRAPH_WALK_H

#include "base/arena.h"
#include "graph/graph.h"

struct graph_walk {
    bool *seen; /* by node */
    int *stack, n;
};

static inline struct graph_walk graph_walk_new(struct arena *arena, const struct graph *graph)
{
    size_t n = graph->nodes.n + 1;
    return (struct graph_walk){.seen = (bool *)arena_array(arena, n, sizeof(bool)),
                               .stack = (int *)arena_array(arena, n, sizeof(int))};
}

static inline void graph_walk_to(struct graph_walk *walk, int node)
{
    if (node < 0 || walk->seen[node])
        return;
    walk->seen[node] = true;
    walk->stack[walk->n++] = node;
}

/* Pushes all producers of the node's data inputs. */
static inline void graph_walk_inputs(struct graph_walk *walk, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        graph_walk_to(walk, node->inputs[i].node);
}

/* Pushes all that the node needs: producers of its data inputs, and its control inputs. */
static inline void graph_walk_needs(struct graph_walk *walk, const struct node *node)
{
    for (int i = 0; i < node->n_inputs + node->n_controls; i++)
        graph_walk_to(walk, node_dependency(node, i).node);
}

static inline void graph_walk_entry(struct graph_walk *walk, const struct entry *entry)
{
    for (int i = 0; i < entry->n_edges; i++)
        graph_walk_to(walk, entry->edges[i].node);
}

/* Returns the next node to visit; NULL: there are no more. */
static inline const struct node *graph_walk_next(struct graph_walk *walk, const struct graph *graph)
{
    return walk->n ? graph_node(graph, walk->stack[--walk->n]) : NULL;
}

/* Finishes the walk; returns for each node whether it or a user of it was walked to. */
static inline const bool *graph_walk_end(struct graph_walk *walk, const struct graph *graph)
{
    while (walk->n)
        graph_walk_needs(walk, graph_walk_next(walk, graph));
    return walk->seen;
}

/* Returns for each node whether the entry needs it. */
static inline const bool *graph_entry_needs(struct arena *arena, const struct graph *graph,
                                            const struct entry *entry)
{
    struct graph_walk walk = graph_walk_new(arena, graph);
    graph_walk_entry(&walk, entry);
    return graph_walk_end(&walk, graph);
}

#endif
