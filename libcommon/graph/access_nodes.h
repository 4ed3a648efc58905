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
/* Returns whether the node writes the variable whose reference that input is. */
bool node_writes_ref(const struct node *node, int input);

/* Returns whether the edge is a variable itself, which exists in every loop. */
bool access_is_variable(const struct graph *graph, struct edge edge);
/* Returns the variable that a node writes, or NULL. */
const struct node *access_written(const struct graph *graph, const struct node *node);

/* Returns, by node, the variable that it is or whose reference it passes on (-1: none), named by
 * the first node that is it (same name and container). In the arena's memory. */
const int *access_variables(const struct graph *graph, struct arena *memory);
/* The same for the source of an edge, if the edge carries a reference; -1 if it carries a value. */
int access_variable_at(const struct graph *graph, const int *variables, struct edge edge);

/* Returns, by node, whether its outputs may share the memory of a variable that is set in `changed`
 * (by the variable's node). `order` is topological. In the arena's memory. */
const bool *access_shown(const struct graph *graph, const int *order, const int *variables,
                         const bool *changed, struct arena *memory);

/* Adds the node's edges and, in the order of its inputs, its accesses; a copy would serve for each
 * read outside of loops. */
void access_add_node(struct access_graph *accesses, const struct graph *graph, const int *variables,
                     const struct node *node);

/* Adds the conditions of the graph, numbered as in `frames`, and those of loops. */
void access_name_conditions(struct access_graph *accesses, const struct frames *frames,
                            struct arena *memory);

/* Adds the loops, what enters them, and the conditions that nodes and loops run under, all from
 * `frames`, whose memory is borrowed. */
void access_add_frames(struct access_graph *accesses, const struct graph *graph,
                       const struct frames *frames, struct arena *memory);

#endif
