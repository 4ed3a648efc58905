/* SPDX-License-Identifier: Apache-2.0
 *
 * What a dynamic plan has besides items and values: frames, edges, regions. Private to
 * libcommon/exec.
 *
 * An item runs when everything it waits for has arrived (the 2015 white paper, section 3.1; control
 * flow as in section 4.4 and in Yu et al., "Dynamic Control Flow in Large-Scale Machine Learning",
 * 2018). Each execution has a tag, a frame and an iteration: Enter sends its value into iteration 0
 * of a child frame, NextIteration into the next iteration, Exit into the parent. A value that was
 * not taken by Switch is dead, and deadness passes through everything but Merge.
 *
 * What is between points, where only running tells when or whether something comes, runs as
 * regions: items in a fixed order with planned memory, as in a whole plan (region_find.c).
 */
#ifndef TF_EXEC_REGION_H
#define TF_EXEC_REGION_H

#include "exec/plan/plan_private.h"

#define EDGE_CONTROL (-1)
#define EDGE_AFTER (-2)

enum item_role {
    ROLE_PLAIN,
    ROLE_MERGE,
    ROLE_ENTER,
    ROLE_EXIT,
    ROLE_NEXT,
    ROLE_TRIGGER, /* ControlTrigger: runs even when its inputs are dead */
    ROLE_SEND,    /* runs when its input is dead, too, and says so */
    ROLE_RECV,    /* is dead when what it receives is */
};

struct out_edge {
    int slot;  /* of the producer; -1 for control and after */
    int input; /* of the consumer, or EDGE_CONTROL, EDGE_AFTER */
    int item;
    bool is_ref;
    bool gives; /* the value itself, which nobody takes who comes later */
    /* So that who sends need not look at the consumer: */
    bool is_to_merge;
    int waits; /* `local` of the consumer's head */
    int place; /* of the input among those of the iteration */
};

struct dynamic_item {
    enum item_role role;
    int frame, local;            /* local: index within the frame */
    int region;                  /* -1: a point */
    int head;                    /* the region's first item, which waits for all; a point: itself */
    int position;                /* of an item of a region: in the frame's order */
    int n_ready;                 /* arrivals that it waits for, directly or not */
    int pending;                 /* arrivals to wait for (of a Merge: control and after only) */
    int merge_first, merge_next; /* data inputs of a Merge in iteration 0, and in later ones */
    bool merge_ready;            /* a Merge with an input that is always there */
    bool is_constant;            /* of an Enter */
    bool is_cheap;
    int child_frame;               /* of an Enter */
    int first_input, first_output; /* in the iteration's arrays */
    int first_edge, n_edges;
    variable_lock_vec locks; /* taken before it runs, in that order; */
    variable_lock_vec gives; /* of a whole plan: which are given back after it, else all are */
};

struct region_item;

/* Items that run one after the other, by one thread: region_find.c. */
struct region {
    const struct region_item *items;
    int frame;
    int first, n; /* in the frame's order */
    int n_ready, level;
    int rank;      /* who comes first */
    bool leads;    /* one of its items does */
    bool is_cheap; /* all its items are */
    bool is_empty; /* none of them does anything */
    bool fetches;  /* one of them does */
    bool frees;    /* one is given what has left and come back, whose memory is then free */
    bool lets_go;  /* after it outputs are let go of that others have been given */
};

/* An item of a region, at its position. */
struct region_item {
    int item;
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

/* What an item, or a region's first, still waits for in an iteration. */
struct counter {
    int pending;
    unsigned dead : 30, has_live : 1, fired : 1;
};

struct dynamic_frame {
    bool has_order; /* one order runs all of it: a whole plan's, or a loop's */
    const char *name;
    uint64_t key; /* hash of the name: the same in every plan that has a part of the loop */
    int parent;
    int n_items, n_inputs, n_outputs;
    int n_enters;
    int parallel_iterations;
    VEC(int) items;
    struct counter *waits; /* as an iteration begins: by local item */
    VEC(int) roots;        /* of the outermost frame: items that wait for nothing */
    int n_heads;           /* points, and first items of regions */
    VEC(int) exits;
    VEC(struct region_item) order; /* region after region */
    VEC(int) counted;              /* with an order: values whose memory is */
    size_t arena_bytes[2];         /* of an iteration: in host memory, in the device's */
    VEC(struct out_edge) over;     /* to items of the parent that run after the loop is over */
};

struct dynamic {
    struct dynamic_item *items;
    struct dynamic_item all;          /* of a whole plan that is captured: with all its locks */
    int n_items;                      /* that there is memory for */
    VEC(struct dynamic_frame) frames; /* 0: the root; then the plan's `loops` */
    VEC(struct region) regions;
    int *next_drop; /* by value: another one that is let go of with it; -1 */
    struct out_edge *edges;
    int threads;      /* that run regions, and points that are not cheap, of a step at once */
    bool keeps_reads; /* `kept` are locked for reading as long as a step lasts */
    VEC(struct variable *) kept; /* in the order of their ids */
};

/* Whether the value is made in the region, for all that come later there. A variable is what it is
 * when it is read, whoever has written it. */
static inline bool region_has_made(const struct plan *plan, int v, int region)
{
    int from = plan->values.items[v].item;
    return from >= 0 && plan->values.items[v].kind != VALUE_VARIABLE &&
           plan->dynamic->items[from].region == region;
}

/* Whether it lies in an arena. */
static inline bool region_is_placed(const struct plan *plan, int v)
{
    return plan->values.items[v].offset >= 0;
}

/* One that is there always, not only where a loop or a branch runs. */
static inline bool region_sees_constant(const struct value *value)
{
    return value->kind == VALUE_CONSTANT && value->item < 0;
}

#endif
