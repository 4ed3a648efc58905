/* SPDX-License-Identifier: Apache-2.0
 *
 * Hash map from text, or from numbers, to a 64-bit value (an index or a pointer). Text is borrowed:
 * it must outlive the map. The keys of one map are all text or all numbers. Concurrent map_get
 * calls are thread-safe; writing is not.
 */
#ifndef TF_BASE_MAP_H
#define TF_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
    const char *key; /* NULL: free */
    uint64_t hash;
    int64_t value;
};

struct map {
    struct map_slot *slots;
    size_t n, capacity; /* capacity is 0 or a power of two */
};

#define MAP_INIT                                                                                   \
    {                                                                                              \
        0                                                                                          \
    }

void map_put(struct map *map, const char *key, int64_t value); /* or replaces */
bool map_get(const struct map *map, const char *key, int64_t *value);
bool map_remove(struct map *map, const char *key);
void map_put_number(struct map *map, uint64_t key, int64_t value); /* or replaces */
bool map_get_number(const struct map *map, uint64_t key, int64_t *value);
void map_release(struct map *map);

/* 64-bit hash of bytes (XXH3), the same on every machine and in every version. */
uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed);
uint64_t hash_text(const char *text);

#endif
