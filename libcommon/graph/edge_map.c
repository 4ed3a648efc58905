/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/edge_map.h"

#include "base/memory.h"

/* The slot that holds the edge, or the free one where it would go. Linear probing. */
static struct edge_slot *find(const struct edge_map *map, struct edge edge)
{
    uint64_t key = (uint64_t)(uint32_t)edge.node << 32 | (uint32_t)edge.slot;
    uint64_t hash = (key ^ key >> 29) * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = hash >> 32 & (map->capacity - 1);; i = (i + 1) & (map->capacity - 1)) {
        struct edge_slot *slot = &map->slots[i];
        if (!slot->used || edge_equal(slot->edge, edge))
            return slot;
    }
}

static void grow(struct edge_map *map)
{
    struct edge_map old = *map;
    map->capacity = old.capacity ? old.capacity * 2 : 16;
    map->slots = mem_array(map->capacity, sizeof *map->slots);
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].used)
            *find(map, old.slots[i].edge) = old.slots[i];
    mem_free(old.slots);
}

void edge_map_add(struct edge_map *map, struct edge edge, int value)
{
    if (map->n * 2 >= map->capacity)
        grow(map);
    struct edge_slot *slot = find(map, edge);
    if (slot->used)
        return;
    *slot = (struct edge_slot){edge, value, true};
    map->n++;
}

int edge_map_get(const struct edge_map *map, struct edge edge)
{
    const struct edge_slot *slot = map->n ? find(map, edge) : NULL;
    return slot && slot->used ? slot->value : -1;
}

void edge_map_release(struct edge_map *map)
{
    mem_free(map->slots);
    *map = (struct edge_map){0};
}
