/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"

uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, n, seed);
}

uint64_t hash_text(const char *text)
{
    return hash_bytes(text, strlen(text), 0);
}

/* Returns the slot that holds `key`, or the free one where it would go. Linear probing. */
static struct map_slot *find(const struct map *map, const char *key, uint64_t hash)
{
    for (size_t i = hash & (map->capacity - 1);; i = (i + 1) & (map->capacity - 1)) {
        struct map_slot *slot = &map->slots[i];
        if (!slot->key || (slot->hash == hash && (slot->key == key || !strcmp(slot->key, key))))
            return slot;
    }
}

static void put(struct map *map, const char *key, uint64_t hash, int64_t value)
{
    if (map->n * 3 >= map->capacity * 2) {
        struct map old = *map;
        map->capacity = old.capacity ? old.capacity * 2 : 16;
        map->slots = mem_array(map->capacity, sizeof *map->slots);
        for (size_t i = 0; i < old.capacity; i++)
            if (old.slots[i].key)
                *find(map, old.slots[i].key, old.slots[i].hash) = old.slots[i];
        mem_free(old.slots);
    }
    struct map_slot *slot = find(map, key, hash);
    if (!slot->key) {
        map->n++;
        slot->key = key;
        slot->hash = hash;
    }
    slot->value = value;
}

static bool get(const struct map *map, const char *key, uint64_t hash, int64_t *value)
{
    const struct map_slot *slot = find(map, key, hash);
    if (slot->key && value)
        *value = slot->value;
    return slot->key != NULL;
}

void map_put(struct map *map, const char *key, int64_t value)
{
    put(map, key, hash_text(key), value);
}

bool map_get(const struct map *map, const char *key, int64_t *value)
{
    return map->n && get(map, key, hash_text(key), value);
}

/* A bijection, so that comparing hashes suffices. */
static uint64_t hash_number(uint64_t key)
{
    uint64_t hash = (key ^ key >> 29) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static const char number[] = ""; /* the key of all numbers */

void map_put_number(struct map *map, uint64_t key, int64_t value)
{
    put(map, number, hash_number(key), value);
}

bool map_get_number(const struct map *map, uint64_t key, int64_t *value)
{
    return map->n && get(map, number, hash_number(key), value);
}

bool map_remove(struct map *map, const char *key)
{
    if (!map->n)
        return false;
    struct map_slot *slot = find(map, key, hash_text(key));
    if (!slot->key)
        return false;
    slot->key = NULL;
    map->n--;
    /* Close the gap: later members of the run may no longer be reachable past the free slot. */
    size_t i = (size_t)(slot - map->slots);
    for (;;) {
        i = (i + 1) & (map->capacity - 1);
        struct map_slot moved = map->slots[i];
        if (!moved.key)
            return true;
        map->slots[i].key = NULL;
        *find(map, moved.key, moved.hash) = moved;
    }
}

void map_release(struct map *map)
{
    mem_free(map->slots);
    *map = (struct map)MAP_INIT;
}
