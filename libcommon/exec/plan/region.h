/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a plan besides items and values: frames, edges, regions. Private to libcommon/exec.
 *
 * An item runs when everything it waits for has arrived (the 2015 white paper, section 3.1; control
 * flow as in section 4.4 and in Yu et al., "Dynamic Control Flow in Large-Scale Machine Learning",
 * 2018). Each execution has a tag, a frame and an iteration: Enter sends its value into iteration 0
 * of a child frame, NextIteration into the next iteration, Exit into the parent. A value that was
 * not taken by Switch is dead, and deadness passes through everything but Merge.
 *
 * What runs is regions: items in a fixed order with planned memory, as in a whole plan, or an async
 * op, an item of which only running tells when or whether its outputs come (region_find.c).
 */
#ifndef TF_EXEC_REGION_H
#define TF_EXEC_REGION_H

#include "base/map.h"
#include "exec/plan/item.h"

#define EDGE_CONTROL (-1)
#define EDGE_AFTER (-2)

struct out_edge {
    int slot;  /* of the producer; -1 for control and after */
    int input; /* of the consumer, or EDGE_CONTROL, EDGE_AFTER */
    int item;
    bool is_ref;
    bool gives; /* passes the value itself on: nobody takes it later */
    /* Copied here so that the sender need not read the consumer: */
    bool is_to_merge;
    int waits; /* `local` of the consumer's head */
    int place; /* of the input in the iteration's array of inputs */
};

struct region_item;

/* Items that one thread runs one after the other: region_find.c. */
struct region {
    const struct region_item *items;
    int frame;
    int first, n; /* in the frame's order */
    int n_ready, level;
    int rank;      /* in the order of regions; -1: an async op */
    bool is_point; /* one item, an async op */
    bool leads;    /* other regions wait for one of its items */
    bool is_cheap; /* all its items are */
    bool is_empty; /* none of its items does anything */
    bool fetches;  /* one of its items is a fetch */
    bool frees;    /* reuses the memory of values that were sent and have returned */
    bool lets_go;  /* after it, drops outputs that others were given */
};

/* Items of a root region that a device may capture: plan_locks.c. */
struct plan_segment {
    const struct region_item *items;
    int first, n;            /* in the frame's order */
    variable_lock_vec locks; /* of all its items, by id */
};

/* An item of a region, and what is to be done at its position. */
struct region_item {
    int item;
    int segment;        /* number, from 1 on, of the segment that begins here; 0: none */
    bool gathers;       /* an input comes from outside of the region */
    bool looks;         /* must look up where an input is, or its shape */
    bool leads;         /* others wait for it */
    bool locks;         /* locks variables */
    bool is_relieved;   /* regions that free memory run before it */
    bool rest_is_cheap; /* all items after it in the region are cheap */
    bool drops;         /* outputs of the region are last needed here: */
    int first_drop;     /* the first of them, a value */
};

/* Returns whether waiting regions are told at once of what has been made so far. */
static inline bool region_tells(const struct region_item *at)
{
    return at->leads && !at->rest_is_cheap;
}

/* The inputs that an item, or a region's first item, still waits for in an iteration. */
struct counter {
    int pending; /* of a Merge: control and after only */
    unsigned dead : 30, has_live : 1, fired : 1;
};

/* A frame of the graph: the root, outside of loops, or a loop. A loop that needs no arrivals is an
 * *item* of its parent: its inputs are the values that enter it, its outputs those that leave it,
 * and an iteration runs the condition's items first, then the body's, in one order. */
struct plan_frame {
    const char *name;
    uint64_t key; /* hash of the name: the same in every plan that has a part of the loop */
    int parallel_iterations;
    bool is_item;
    bool has_order; /* one order runs all of it: it is an item, or the plan is whole */
    bool borrows;   /* iterations use arenas of their run, or of the item, not of their own */
    int n_inputs, n_outputs;
    VEC(int) heads;        /* first items of regions: by their `local` */
    struct counter *waits; /* of each head, when an iteration begins */
    VEC(int) roots;        /* of the root: heads that wait for nothing */
    VEC(int) exits;
    VEC(struct region_item) order; /* region after region, then async ops */
    VEC(int) counted;              /* with an order: values with reference-counted memory */
    size_t arena_bytes[2];         /* of an iteration: in host memory, in the device's */
    VEC(struct out_edge) over;     /* to items of the parent that wait until the loop is over */

    int item;           /* which this loop is; -1: not made yet */
    int n_entered;      /* inputs: Enters into it */
    int first_variable; /* of the graph's: input 0 */
    int *inputs;        /* values */
    bool *kept;         /* by input: an iteration may keep it */
    int *outputs;       /* by input: the output that is its last value; -1: none */
    int *next;          /* by input: its value for the next iteration; -1: it stays the same */
    int goes_on;        /* the value of the condition */
};

/* Returns a key that is unique to an iteration within the step; `outer` is the key of the iteration
 * around it. */
static inline uint64_t while_iteration(uint64_t outer, uint64_t key, int64_t number)
{
    uint64_t path[] = {outer, key, (uint64_t)number + 1};
    uint64_t hash = hash_bytes(path, sizeof path, 0);
    return hash ? hash : 1;
}

#endif
