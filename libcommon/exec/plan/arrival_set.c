/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/plan/arrival_set.h"

#include <string.h>

static size_t set_bytes(const struct arrival_sets *all)
{
    return all->words * sizeof(uint64_t);
}

/* The name of the set in `scratch`. Sets with equal hashes are hashed again with the next seed. */
static int intern(struct arrival_sets *all)
{
    uint64_t seed = 0, hash;
    int64_t known = -1;
    bool is_known;
    do {
        hash = hash_bytes(all->scratch, set_bytes(all), seed++);
        is_known = map_get_number(&all->names, hash, &known);
    } while (is_known && memcmp(all->sets.items[known], all->scratch, set_bytes(all)) != 0);
    if (!is_known) {
        known = (int64_t)all->sets.n;
        map_put_number(&all->names, hash, known);
        vec_push(&all->sets, arena_copy(&all->memory, all->scratch, set_bytes(all)));
    }
    return (int)known;
}

void arrival_sets_init(struct arrival_sets *all, int n_members)
{
    *all = (struct arrival_sets){.words = (size_t)n_members / 64 + 1};
    all->scratch = arena_array(&all->memory, all->words, sizeof *all->scratch);
    intern(all);
}

void arrival_sets_release(struct arrival_sets *all)
{
    vec_release(&all->sets);
    map_release(&all->names);
    arena_release(&all->memory);
}

int arrival_set_union(struct arrival_sets *all, int a, int b)
{
    if (a == b || b == SET_EMPTY)
        return a;
    if (a == SET_EMPTY)
        return b;
    for (size_t i = 0; i < all->words; i++)
        all->scratch[i] = all->sets.items[a][i] | all->sets.items[b][i];
    return intern(all);
}

int arrival_set_with(struct arrival_sets *all, int set, int member)
{
    memcpy(all->scratch, all->sets.items[set], set_bytes(all));
    all->scratch[member / 64] |= (uint64_t)1 << member % 64;
    return intern(all);
}

int arrival_set_count(const struct arrival_sets *all, int set)
{
    int n = 0;
    for (size_t i = 0; i < all->words; i++)
        n += __builtin_popcountll(all->sets.items[set][i]);
    return n;
}

bool arrival_set_is_less(const struct arrival_sets *all, int a, int b)
{
    if (a == b)
        return false;
    for (size_t i = 0; i < all->words; i++)
        if (all->sets.items[a][i] & ~all->sets.items[b][i])
            return false;
    return true;
}
