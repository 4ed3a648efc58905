/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes of variables by the nodes of a graph.
 */
#ifndef TF_GRAPH_ACCESS_NODES_H
#define TF_GRAPH_ACCESS_NODES_H

#include "graph/access.h"
#include "graph/frames.h"

/* Returns whether the node has the variable itself as that input, not its value. */
bool node_takes_ref(const struct node *node, int input);
/* Returns whether the node changes the variable whose reference that input is. */
bool node_writes_ref(const struct node *node, int input);

/* For each node: the variable that it is, or whose reference it hands on, by the first node of all
 * that are that variable (of one name and container); -1. In the arena's memory. */
const int *access_variables(const struct graph *graph, struct arena *memory);
/* The same of what an edge brings; it may be a variable's value. */
int access_variable_at(const struct graph *graph, const int *variables, struct edge edge);

/* Finds by node whether what it gives may be memory, as it is, of a variable of which `changed`
 * says so, by their nodes. `order` is topological. In the arena's memory. */
const bool *access_shown(const struct graph *graph, const int *order, const int *variables,
                         const bool *changed, struct arena *memory);

/* Adds the node's edges and, in the order of its inputs, accesses; of reads outside of loops copies
 * would do. */
void access_add_node(struct access_graph *accesses, const struct graph *graph, const int *variables,
                     const struct node *node);

/* Adds the conditions of the graph, with the numbers that frames has. */
void access_name_conditions(struct access_graph *accesses, const struct frames *frames);

/* Adds which loops there are, what enters them, and under which conditions nodes and loops run, as
 * frames has it, which is borrowed. */
void access_add_frames(struct access_graph *accesses, const struct graph *graph,
                       const struct frames *frames, struct arena *memory);

#endif
