/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs for Graphviz: scopes as nested boxes, devices as outermost boxes, data edges labelled with
 * their types, control edges dashed.
 */
#ifndef TF_GRAPH_DOT_H
#define TF_GRAPH_DOT_H

#include "graph/graph.h"

/* Appends the graph. With depth > 0, a scope at that depth is one box without its contents. */
void graph_print_dot(struct str *out, const struct graph *graph, int depth);

#endif
