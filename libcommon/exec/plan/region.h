/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plan has besides items and values: frames, edges, regions. Private to libcommon/exec.
 *
 * An item runs when everything it waits for has arrived (the 2015 white paper, section 3.1; control
 * flow as in section 4.4 and in Yu et al., "Dynamic Control Flow in Large-Scale Machine Learning",
 * 2018). Each execution has a tag, a frame and an iteration: Enter sends its value into iteration 0
 * of a child frame, NextIteration into the next iteration, Exit into the parent. A value that was
 * not taken by Switch is dead, and deadness passes through everything but Merge.
 *
 * What runs is regions: items in a fixed order with planned memory, as in a whole plan, or a point,
 * one item of which only running tells when or whether something comes (region_find.c).
 */
#ifndef TF_EXEC_REGION_H
#define TF_EXEC_REGION_H

#include <string.h>

#include "base/map.h"
#include "exec/plan/item.h"

#define EDGE_CONTROL (-1)
#define EDGE_AFTER (-2)

struct out_edge {
    int slot;  /* of the producer; -1 for control and after */
    int input; /* of the consumer, or EDGE_CONTROL, EDGE_AFTER */
    int item;
    bool is_ref;
    bool gives; /* the value itself, which nobody takes who comes later */
    /* The sender reads this here, so that it need not look at the consumer: */
    bool is_to_merge;
    int waits; /* `local` of the consumer's head */
    int place; /* of the input among those of the iteration */
};

struct region_item;

/* Items that run one after the other, by one thread: region_find.c. */
struct region {
    const struct region_item *items;
    int frame;
    int first, n; /* in the frame's order */
    int n_ready, level;
    int rank;      /* who comes first; -1: a point */
    bool is_point; /* an item of which only running tells when, or whether, there is its output */
    bool leads;    /* one of its items does */
    bool is_cheap; /* all its items are */
    bool is_empty; /* none of them does anything */
    bool fetches;  /* one of them does */
    bool frees;    /* one is given what has left and come back, whose memory is then free */
    bool lets_go;  /* after it outputs are let go of that others have been given */
    bool moves;    /* its item moves a value between iterations */
};

/* Items of a region of the root that a device may capture: plan_locks.c. */
struct plan_segment {
    const struct region_item *items;
    int first, n;            /* in the frame's order */
    variable_lock_vec locks; /* all that they lock, by id */
};

/* An item of a region, at its position. */
struct region_item {
    int item;
    int segment;         /* that begins with it: its number, from 1 on; 0: none does */
    bool gathers;        /* an input comes from elsewhere */
    bool looks;          /* where an input is, or its shape, is not what was sent */
    bool leads;          /* others wait for it */
    bool locks;          /* variables */
    bool makes_outgoing; /* an output is large, and leaves the process */
    bool is_relieved;    /* what frees comes before it */
    bool rest_is_cheap;  /* what comes after it in the region */
    bool drops;          /* outputs of the region are not needed here after it: */
    int first_drop;      /* the first of them, a value */
};

/* Returns whether others are told at once what has been made by then. */
static inline bool region_tells(const struct region_item *at)
{
    return at->leads && !at->rest_is_cheap;
}

/* The number of inputs that an item, or a region's first, still waits for in an iteration. */
struct counter {
    int pending;
    unsigned dead : 30, has_live : 1, fired : 1;
};

/* A frame of the graph: what is outside of loops, or a loop. One that needs no arrivals is an
 * *item* of its parent: its inputs are what enters it, its outputs what leaves it, and in an
 * iteration the condition's items come first, then the body's, in one order. */
struct plan_frame {
    const char *name;
    uint64_t key; /* hash of the name: the same in every plan that has a part of the loop */
    int parallel_iterations;
    bool is_item;
    bool has_order; /* one order runs all of it: it is an item, or the plan is whole */
    bool borrows;   /* iterations have arenas of their run, or of the item, not of their own */
    int n_inputs, n_outputs;
    int n_enters;
    VEC(int) heads;        /* first items of regions: by their `local` */
    struct counter *waits; /* of each, as an iteration begins */
    VEC(int) roots;        /* of the outermost frame: those that wait for nothing */
    VEC(int) exits;
    VEC(struct region_item) order; /* region after region, points behind them */
    VEC(int) counted;              /* with an order: values whose memory is */
    size_t arena_bytes[2];         /* of an iteration: in host memory, in the device's */
    VEC(struct out_edge) over;     /* to items of the parent that run after the loop is over */

    int item;        /* that it is; -1: not made yet */
    int n_variables; /* the first that enter; those behind are the same in all iterations */
    int n_entered;
    int *inputs;  /* values */
    bool *kept;   /* by input: an iteration keeps it */
    int *outputs; /* by variable: which output its last value is; -1: none */
    int *next;    /* by variable: the value that goes into the next iteration */
    int goes_on;  /* the value that says whether there is one */
};

/* Returns a key that tells a loop from all others of its plan, and is the same in every plan that
 * has a part of it. */
static inline uint64_t while_key(const char *frame)
{
    return hash_bytes(frame, strlen(frame), 0);
}

/* Returns a key that tells an iteration from all others of the step, from that of the iteration
 * around it. */
static inline uint64_t while_iteration(uint64_t outer, uint64_t key, int64_t number)
{
    uint64_t path[] = {outer, key, (uint64_t)number + 1};
    uint64_t hash = hash_bytes(path, sizeof path, 0);
    return hash ? hash : 1;
}

#endif
