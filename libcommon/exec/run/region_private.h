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

/* region_place.c: what regions compute gets its place in the arenas of frames. */
void region_place(struct region_find *f);

/* region_list.c: the order in which the plan is shown. */
void region_list(struct region_find *f);

#endif
