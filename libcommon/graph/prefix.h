/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefixes for the names that a pass makes, distinct from all existing names.
 */
#ifndef TF_GRAPH_PREFIX_H
#define TF_GRAPH_PREFIX_H

#include "graph/graph.h"

/* Returns the first of BASE, BASE.1, BASE.2, ... that is no prefix of the name of any node or
 * alias: `base` itself, or a text in the arena. */
const char *graph_free_prefix(struct arena *arena, const struct graph *graph, const char *base);

#endif
