/* SPDX-License-Identifier: Apache-2.0
 *
 * Going through a graph along its edges, each node once however many edges lead to it: the stack
 * has a place for every node, and a node is marked when it is put there.
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
    return (struct graph_walk){.seen = arena_array(arena, n, sizeof(bool)),
                               .stack = arena_array(arena, n, sizeof(int))};
}

static inline void graph_walk_to(struct graph_walk *walk, int node)
{
    if (node < 0 || walk->seen[node])
        return;
    walk->seen[node] = true;
    walk->stack[walk->n++] = node;
}

/* To all that the node takes data from. */
static inline void graph_walk_inputs(struct graph_walk *walk, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        graph_walk_to(walk, node->inputs[i].node);
}

/* The next one to look at; NULL: that was all. */
static inline const struct node *graph_walk_next(struct graph_walk *walk, const struct graph *graph)
{
    return walk->n ? graph_node(graph, walk->stack[--walk->n]) : NULL;
}

#endif
