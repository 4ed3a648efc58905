/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of small numbers, each set stored once, so that equal sets have equal names. Private to
 * libcommon/exec.
 */
#ifndef TF_EXEC_ARRIVAL_SET_H
#define TF_EXEC_ARRIVAL_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

#define SET_EMPTY 0 /* the name of the set without members */

struct arrival_sets {
    size_t words;         /* of each */
    VEC(uint64_t *) sets; /* by name */
    struct map names;     /* by the hash of a set */
    uint64_t *scratch;
    struct arena memory; /* of all sets */
};

void arrival_sets_init(struct arrival_sets *all, int n_members);
void arrival_sets_release(struct arrival_sets *all);

/* Take and return names, which are valid until release. */
int arrival_set_union(struct arrival_sets *all, int a, int b);
int arrival_set_with(struct arrival_sets *all, int set, int member);

int arrival_set_count(const struct arrival_sets *all, int set); /* of its members */

static inline bool arrival_set_has(const struct arrival_sets *all, int set, int member)
{
    return all->sets.items[set][member / 64] >> member % 64 & 1;
}

/* Returns whether a is a proper subset of b. */
bool arrival_set_is_less(const struct arrival_sets *all, int a, int b);

#endif
