/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that find regions share. Private to libcommon/exec.
 */
#ifndef TF_EXEC_REGION_PRIVATE_H
#define TF_EXEC_REGION_PRIVATE_H

#include "exec/run/arrival_set.h"
#include "exec/run/dynamic.h"

struct key {
    int ready, dead; /* sets: of a point, what its arrivals bring with them */
    int level;
};

struct region_find {
    struct plan *plan;
    struct dynamic *d;
    struct arrival_sets sets;
    struct key *keys;  /* by item */
    int *arrival;      /* the first of a point's: by item */
    int *over_arrival; /* that a loop is over: by frame */
    bool alone;        /* every item is a region */
};

/* Whether the value is made in the region, for all that come later there. A variable is what it is
 * when it is read, whoever has written it. */
static inline bool region_has_made(const struct plan *plan, int v, int region)
{
    int from = plan->values.items[v].item;
    return from >= 0 && plan->values.items[v].kind != VALUE_VARIABLE &&
           plan->dynamic->items[from].region == region;
}

/* One that is there always, not only where a loop or a branch runs. */
static inline bool region_sees_constant(const struct value *value)
{
    return value->kind == VALUE_CONSTANT && value->item < 0;
}

/* region_memory.c: before a region of the iteration runs. */
int region_open(struct run *run, struct iteration *it, struct error *err);

/* region_late.c: changes the order within regions, which comes one after the other, so that what
 * leaves has less memory at once. */
void region_put_late(const struct region_find *f, int *order, int n_order);

/* region_place.c: what regions compute gets its place in the arenas of frames. */
void region_place(struct region_find *f);

#endif
