/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a plan. Private to libcommon/exec.
 *
 * A plan has its own pruned copy of the graph (prune.h), in which feeds are Placeholders. Each node
 * that computes becomes an *item*, each output a *value*; the planner adds items of its own:
 * fetches, changes of layout, copies between host and device memory, and copies of variables that
 * are read before a write and needed after it. plan_prepare.c makes them, plan_order.c orders reads
 * and writes of variables, plan_memory.c places values in arenas (plan_steps.h). exec/run runs the
 * regions that region.h describes.
 */
#ifndef TF_EXEC_PLAN_PRIVATE_H
#define TF_EXEC_PLAN_PRIVATE_H

#include "exec/device/fault.h"
#include "exec/plan/fuse.h"
#include "exec/plan/plan.h"
#include "exec/plan/region.h"
#include "graph/frames.h"

struct pool;
struct run;

struct plan {
    const struct graph *source;
    struct graph *pruned;          /* a copy of what the request needs of it */
    struct fusion fused;           /* that graph behind the device's passes */
    struct graph *graph;           /* one of both; its nodes are what items point to */
    struct frames *graph_frames;   /* NULL: the graph has no control flow */
    VEC(struct plan_frame) frames; /* the first is the root, outside of all loops */
    const int *parents;            /* of frames; -1: the root has none; NULL: there are no loops */
    int in_frame;                  /* the frame for which items are being made */
    struct plan_options options;
    VEC(struct item) items;
    VEC(struct value) values;
    struct arena memory; /* of all else here, and of the members' arrays */
    int *value_of;       /* first output's value, by node of `graph`; -1: none */
    int *item_of;        /* by node; -1: none */
    bool *may_be_absent; /* by node: a constant of a loop or a branch */
    int *looked_at;      /* by node: the last search for controls that visited it */
    int n_looks;
    arc_vec wishes; /* orders to be kept where they close no cycle */
    int *order,
        n_order; /* items with a fixed order, as they run: the whole plan's, then loop by loop */
    int n_feeds, n_fetches;
    struct edge *feeds;         /* as requested */
    struct tensor *feed_values; /* their types and shapes */
    struct edge_map fed;        /* outputs of these nodes -> feed, in the final graph */
    int *fetch_values;
    int *fetch_places; /* in a part's plan: struct plan_place; NULL: the plan sees all uses */
    bool is_whole;
    bool has_branches;          /* some items of a fixed order may not run */
    bool is_on_device;          /* items use memory that is not the host's */
    struct fault_source faults; /* of its items, on a device with memory of its own */
    struct arenas *own_arenas;  /* NULL: options.arenas are a session's */
    struct run *idle_runs;      /* memory of finished steps; guarded by the arenas' lock */
    struct pool *pools[2]; /* of reference-counted values in host memory (of a device: fetches and
                            * copies, too), and in a device's, with temporary memory; NULL: there is
                            * no such memory, or the plan is being made */
    VEC(struct region) regions;
    VEC(struct plan_segment) segments;
    int *next_drop; /* by value: the next one that is dropped with it; -1: none */
    bool keeps_reads;
    variable_lock_vec locks; /* if `keeps_reads`: held for the whole step; by id */
};

/* Returns whether the items of the frame have a fixed order. */
static inline bool plan_has_order(const struct plan *plan, int frame)
{
    return plan->frames.items[frame].has_order;
}

/* The frame in which the node runs. */
static inline int plan_frame_of(const struct plan *plan, const struct node *node)
{
    return plan->graph_frames ? plan->graph_frames->frame[node->id] : FRAME_ROOT;
}

/* The condition under which the node runs, as far as the graph shows it. */
static inline int plan_condition_of(const struct plan *plan, const struct node *node)
{
    return node && plan->graph_frames ? plan->graph_frames->condition[node->id] : CONDITION_NONE;
}

/* Returns whether another item, a loop, repeats this one. */
static inline bool plan_is_repeated(const struct plan *plan, const struct item *item)
{
    return plan->frames.items[item->frame].is_item;
}

/* The item that makes input `in` of an item; -1: no item does. */
static inline int plan_maker(const struct plan *plan, const struct item *item, int input)
{
    return item->in[input] < 0 ? -1 : plan->values.items[item->in[input]].item;
}

/* The number of threads that a kernel may use: 1 if kernels run in parallel. */
static inline int plan_team(const struct plan *plan)
{
    bool is_parallel = !plan->is_whole && plan->options.threads > 1;
    return is_parallel ? 1 : plan->options.device->threads;
}

/* The value with this value's memory, following aliases. */
static inline int plan_root_value(const struct plan *plan, int value)
{
    return plan->values.items[value].root;
}

/* Returns whether the item only enqueues a copy of its input, to the host or from there. */
bool plan_is_copied(const struct plan *plan, const struct item *item);
/* Returns whether the item copies a feed to the device's memory. */
bool plan_is_feed_copy(const struct plan *plan, const struct item *item);
/* Returns whether the value is made in the region, for all items that come later there. A variable
 * is never made in one: its value is that at the time of the read, whichever region wrote it. */
static inline bool region_has_made(const struct plan *plan, int v, int region)
{
    int from = plan->values.items[v].item;
    return from >= 0 && region >= 0 && plan->values.items[v].kind != VALUE_VARIABLE &&
           plan->items.items[from].region == region;
}

/* Returns whether it is a constant that exists always, not only where a loop or branch runs. */
static inline bool region_sees_constant(const struct value *value)
{
    return value->kind == VALUE_CONSTANT && value->item < 0;
}

/* Returns whether an input of a region's item is read where it was made, rather than delivered. */
static inline bool region_has_input(const struct plan *plan, const struct item *item, int input)
{
    const struct value *value = &plan->values.items[item->in[input]];
    return value->kind == VALUE_FEED || region_sees_constant(value) ||
           region_has_made(plan, item->in[input], item->region);
}

/* Frees a plan that has no run left (plan_free of exec/run calls it). */
void plan_release(struct plan *plan);

#endif
