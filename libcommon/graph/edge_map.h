/* SPDX-License-Identifier: Apache-2.0
 *
 * Hash map from edges of one graph to numbers: places in a list, say. Not thread-safe for writing.
 */
#ifndef TF_GRAPH_EDGE_MAP_H
#define TF_GRAPH_EDGE_MAP_H

#include "graph/graph.h"

struct edge_slot {
    struct edge edge;
    int value;
    bool used;
};

struct edge_map {
    struct edge_slot *slots;
    size_t n, capacity; /* capacity is 0 or a power of two */
};

/* The first value of an edge stays. */
void edge_map_add(struct edge_map *map, struct edge edge, int value);
int edge_map_get(const struct edge_map *map, struct edge edge); /* -1: it has none */
void edge_map_release(struct edge_map *map);

#endif
