/* SPDX-License-Identifier: Apache-2.0
 *
 * Hash map from edges of one graph to numbers, for example indices. Not thread-safe for writing.
 */
#ifndef TF_GRAPH_EDGE_MAP_H
#define TF_GRAPH_EDGE_MAP_H

#include "base/map.h"
#include "graph/graph.h"

struct edge_map {
    struct map map;
};

static inline uint64_t edge_key(struct edge edge)
{
    return (uint64_t)(uint32_t)edge.node << 32 | (uint32_t)edge.slot;
}

/* -1: it has none. */
static inline int edge_map_get(const struct edge_map *map, struct edge edge)
{
    int64_t value = -1;
    map_get_number(&map->map, edge_key(edge), &value);
    return (int)value;
}

/* If the edge has a value already, that value stays. */
static inline void edge_map_add(struct edge_map *map, struct edge edge, int value)
{
    if (!map_get_number(&map->map, edge_key(edge), NULL))
        map_put_number(&map->map, edge_key(edge), value);
}

static inline void edge_map_release(struct edge_map *map)
{
    map_release(&map->map);
}

#endif
