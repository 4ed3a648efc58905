/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store/digest_set.h"

#include <string.h>

#include "base/memory.h"

static size_t find(const struct digest_set *set, const struct digest *digest)
{
    size_t i;
    memcpy(&i, digest, sizeof i);
    for (i &= set->capacity - 1; set->values[i] && !digest_equal(&set->keys[i], digest);)
        i = (i + 1) & (set->capacity - 1);
    return i;
}

int digest_set_get(const struct digest_set *set, const struct digest *digest)
{
    return set->capacity ? set->values[find(set, digest)] : 0;
}

static void grow(struct digest_set *set)
{
    struct digest_set old = *set;
    set->capacity = old.capacity ? 2 * old.capacity : 256;
    set->keys = mem_array(set->capacity, sizeof *set->keys);
    set->values = mem_array(set->capacity, 1);
    for (size_t i = 0; i < old.capacity; i++) {
        if (!old.values[i])
            continue;
        size_t at = find(set, &old.keys[i]);
        set->keys[at] = old.keys[i];
        set->values[at] = old.values[i];
    }
    mem_free(old.keys);
    mem_free(old.values);
}

void digest_set_put(struct digest_set *set, const struct digest *digest, int value)
{
    if (2 * set->n >= set->capacity)
        grow(set);
    size_t at = find(set, digest);
    set->n += !set->values[at];
    set->keys[at] = *digest;
    set->values[at] = (uint8_t)value;
}

void digest_set_release(struct digest_set *set)
{
    mem_free(set->keys);
    mem_free(set->values);
    *set = (struct digest_set){0};
}
