/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that find regions share. Private to libcommon/exec.
 */
#ifndef TF_EXEC_REGION_PRIVATE_H
#define TF_EXEC_REGION_PRIVATE_H

#include "exec/plan/arrival_set.h"
#include "exec/plan/plan_steps.h"

struct key {
    int ready, dead; /* sets: of a point, what its arrivals bring with them */
    int level;
};

/* An item gets memory that one of another region used last. */
struct reuse {
    int from_region, to_region;
    int position; /* of `before` in its region */
    int before, item;
};

struct region_find {
    struct plan *plan;
    struct arrival_sets sets;
    struct key *keys;  /* by item */
    int *arrival;      /* the first of a point's: by item */
    int *over_arrival; /* that a loop is over: by frame */
    bool alone;        /* every item is a region */
    VEC(struct reuse) reuses;
};

/* region_late.c: changes the order within regions, so that what leaves has less memory at once. */
void region_put_late(struct plan *plan);

/* plan_memory.c: what regions compute gets its place: lifetimes, reuse, offsets of what the items
 * of each frame's regions compute, in arenas of its own (in host memory, in the device's); those of
 * a loop are the scratch of its item, which comes in a frame further out. Where regions run as they
 * come, an item gets what those of another region used only if it may follow them. */
void plan_place_memory(struct region_find *f);

#endif
