/* SPDX-License-Identifier: Apache-2.0
 *
 * How names that a pass makes may begin, to be told from all that are there.
 */
#ifndef TF_GRAPH_PREFIX_H
#define TF_GRAPH_PREFIX_H

#include "graph/graph.h"

/* Returns the first of BASE, BASE.1, BASE.2, ... with which the name of no node or alias begins:
 * `base` itself, or in the arena. */
const char *graph_free_prefix(struct arena *arena, const struct graph *graph, const char *base);

#endif
