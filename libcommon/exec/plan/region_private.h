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

struct region_find {
    struct plan *plan;
    struct arrival_sets sets;
    struct key *keys;  /* by item */
    int *arrival;      /* the first of a point's: by item */
    int *over_arrival; /* that a loop is over: by frame */
    bool alone;        /* every item is a region */
};

/* region_late.c: changes the order within regions, which comes one after the other, so that what
 * leaves has less memory at once. */
void region_put_late(const struct region_find *f, int *order, int n_order);

/* region_place.c: what regions compute gets its place in the arenas of frames. */
void region_place(struct region_find *f);

/* plan_frames.c: adds an item to what its frame runs as it comes. */
void plan_place_in_frame(struct plan *plan, int item);
/* The innermost frame that both are in; the one below `outer` that `frame` is in. */
int plan_common_frame(const struct plan *plan, int a, int b);
int plan_frame_below(const struct plan *plan, int outer, int frame);

/* region_find.c: regions, their order and memory. */
int region_find(struct plan *plan, struct error *err);

/* region_prepare.c: when edges are known, what is to be done at each position. */
void region_prepare(struct plan *plan);

#endif
