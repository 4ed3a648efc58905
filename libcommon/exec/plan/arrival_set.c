/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/plan/arrival_set.h"

#include <string.h>

#include "base/map.h"
#include "base/memory.h"

static size_t set_bytes(const struct arrival_sets *all)
{
    return all->words * sizeof(uint64_t);
}

/* Where the set stands in the table, or would. */
static int *find_slot(const struct arrival_sets *all, const uint64_t *set)
{
    size_t at = hash_bytes(set, set_bytes(all), 0) & (all->n_slots - 1);
    while (all->slots[at] >= 0 && memcmp(all->sets.items[all->slots[at]], set, set_bytes(all)) != 0)
        at = (at + 1) & (all->n_slots - 1);
    return &all->slots[at];
}

static void grow(struct arrival_sets *all)
{
    all->n_slots = all->n_slots ? 2 * all->n_slots : 64;
    mem_free(all->slots);
    all->slots = mem_array(all->n_slots, sizeof *all->slots);
    memset(all->slots, -1, all->n_slots * sizeof *all->slots);
    for (size_t i = 0; i < all->sets.n; i++)
        *find_slot(all, all->sets.items[i]) = (int)i;
}

/* Counts the members of the set in `scratch`. */
static int count_members(const struct arrival_sets *all)
{
    int n = 0;
    for (size_t i = 0; i < all->words; i++)
        n += __builtin_popcountll(all->scratch[i]);
    return n;
}

/* The name of what is in `scratch`. */
static int intern(struct arrival_sets *all)
{
    if (2 * (all->sets.n + 1) > all->n_slots)
        grow(all);
    int *slot = find_slot(all, all->scratch);
    if (*slot < 0) {
        uint64_t *set = mem_array(all->words, sizeof *set);
        memcpy(set, all->scratch, set_bytes(all));
        *slot = (int)all->sets.n;
        vec_push(&all->sets, set);
        vec_push(&all->counts, count_members(all));
    }
    return *slot;
}

void arrival_sets_init(struct arrival_sets *all, int n_members)
{
    *all = (struct arrival_sets){.words = (size_t)n_members / 64 + 1};
    all->scratch = mem_array(all->words, sizeof *all->scratch);
    intern(all);
}

void arrival_sets_release(struct arrival_sets *all)
{
    for (size_t i = 0; i < all->sets.n; i++)
        mem_free(all->sets.items[i]);
    vec_release(&all->sets);
    vec_release(&all->counts);
    mem_free(all->slots);
    mem_free(all->scratch);
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

bool arrival_set_is_less(const struct arrival_sets *all, int a, int b)
{
    if (a == b)
        return false;
    for (size_t i = 0; i < all->words; i++)
        if (all->sets.items[a][i] & ~all->sets.items[b][i])
            return false;
    return true;
}
