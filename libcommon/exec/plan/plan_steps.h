/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps in which a plan is made. Private to exec/plan.
 */
#ifndef TF_EXEC_PLAN_STEPS_H
#define TF_EXEC_PLAN_STEPS_H

#include "base/map.h"
#include "exec/plan/arrival_set.h"
#include "exec/plan/fuse.h"
#include "exec/plan/plan_private.h"

/* The places of a node's inputs, in the plan's graph. */
#define PLAN_PLACE "_place"

/* plan_graph.c: prunes; sets graph, feeds, feed_nodes. fetch_edges gets the fetches in the copy. */
int plan_make_graph(struct plan *plan, const struct plan_request *request, struct edge *fetch_edges,
                    struct error *err);

/* Has the device's passes (fuse.h) rewrite plan->graph; `fetch_edges` follow. */
void plan_fuse(struct plan *plan, struct edge *fetch_edges);

/* plan_while.c: finds the frames of plan->graph, and which of them are loops that can run as one
 * item. ERR_DATA: a value of a loop was to be fetched. */
int plan_find_frames(struct plan *plan, const struct edge *fetches, struct error *err);
/* The frame that the node, an Enter, begins, if it is an item; else FRAME_ROOT. */
int plan_entered_loop(const struct plan *plan, const struct node *node);
/* Returns whether it only moves values into one of them, or there to the next iteration, so that
 * values of loops are in order. */
bool plan_is_wiring(const struct plan *plan, const struct node *node);
/* Prepares a node of a loop: true if it has no item of its own. Its values are then the loop's
 * variables, or what leaves the loop. */
bool plan_add_wiring(struct plan *plan, const struct node *node);
/* Binds a node that has an item: its output goes into a loop, or the next iteration of one. */
void plan_bind_wiring(struct plan *plan, const struct node *node);

/* Says of plan->graph whether a fixed order with planned memory will do. */
void plan_find_static(struct plan *plan);
/* ERR_CANCELLED where nobody wants it any more: a large graph may take long. Between all that takes
 * long with it. */
static inline int plan_goes_on(const struct plan *plan, struct error *err)
{
    const atomic_bool *cancelled = plan->options.cancelled, *stopped = plan->options.stopped;
    return cancelled && atomic_load(cancelled) && !(stopped && atomic_load(stopped))
               ? error_set(err, ERR_CANCELLED, "cancelled while it was planned")
               : 0;
}

/* plan_prepare.c: values, items, prepared kernels, fetches. */
int plan_prepare(struct plan *plan, const struct edge *fetch_edges, struct error *err);
int plan_add_value(struct plan *plan, enum dtype type, const struct shape *shape);
int plan_add_item(struct plan *plan, const struct item *item);
bool item_may_be_dead(const struct plan *plan, int item);
/* Adds an item that makes of the value another one of its type and shape, which is returned: as
 * `item` says, or a copy in memory of the same kind. */
int plan_add_derived(struct plan *plan, struct item item, int value, bool on_device);
int plan_add_copy(struct plan *plan, int value);

/* plan_kernel.c: prepares the item's kernel; the item has its inputs and outputs. */
int plan_prepare_kernel(struct plan *plan, struct item *item, struct error *err);
void plan_release_state(struct item *item);

/* plan_transfer.c: the value in the memory that is wanted: itself, or a copy, which all consumers
 * share if it is the same for all. -1 with the error set. */
int plan_in_memory(struct plan *plan, int value, bool on_device, const struct item *consumer,
                   struct error *err);
/* The value in row-major order: itself, or the result of a relayout item; -1 with the error set. */
int plan_row_major(struct plan *plan, int value, struct error *err);
/* When all items are there: finds those that use what is copied to the device, and whether any uses
 * its memory at all. */
void plan_find_copies(struct plan *plan);
/* Returns whether what the node passes on may stay in the memory of the plan's device, which is not
 * the host's: a Send or a Recv from that device to itself, or what is reduced with others. */
bool plan_hands_over(const struct plan *plan, const struct node *node);
/* Returns whether a node, by its row, wants an input in the device's memory, which is not the
 * host's, or gives an output there. */
bool plan_takes_on_device(const struct plan *plan, const struct kernel_row *row,
                          const struct node *node, int input);
bool plan_gives_on_device(const struct plan *plan, const struct kernel_row *row,
                          const struct node *node, int output);
/* Sets the item's code, or which built-in kernel it has. False: it is in no module. */
bool plan_find_code(const struct plan *plan, struct item *item);
/* The item that copies a variable for this input, and for no other; -1: none does. */
int plan_copy_for(const struct plan *plan, const struct item *item, int input);
/* The constant as the host sees it; NULL: the value is none. */
const struct tensor *plan_host_constant(const struct plan *plan, int value);

/* plan_fold.c: computes the item now, if that can be; its outputs become constants. */
void plan_fold(struct plan *plan, struct item *item);

/* plan_order.c: orders reads and writes of variables by the rule of graph/access.h; ERR_DATA if
 * they contradict each other. */
void plan_collect_uses(const struct plan *plan, int item, struct arena *memory, use_vec *uses);
int plan_order_variables(struct plan *plan, struct error *err);

/* plan_views.c: items whose output is their input, perhaps in another shape, do not run: who takes
 * it sees the input. With `in_order`, those that are in order, when they are; else before frames
 * are found. */
void plan_resolve_views(struct plan *plan, bool in_order);

/* plan_schedule.c: puts items into `order` by their rank (-1: they are left out; NULL: those of
 * loops are), and those of one rank so that what one waits for comes first. ERR_INTERNAL if that
 * cannot be. */
int plan_sort(const struct plan *plan, const int *rank, int *order, int *n_order,
              struct error *err);

/* Adds what an item waits for in its iteration: inputs' items, control inputs, `after`. */
struct before {
    int item;
    int slot;      /* which of its outputs; -1: that it is over */
    bool is_after; /* dead or alive */
};
typedef VEC(struct before) before_vec;
void plan_collect_befores(const struct plan *plan, int item, before_vec *befores);

/* plan_memory.c, when items are in order: which values have reference-counted memory. */
void plan_find_counted(struct plan *plan);

/* plan_connect.c: what items are in the dataflow of regions. */
void plan_find_roles(struct plan *plan);
/* ---- regions ---- */

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
    struct arena memory;
};

/* plan_memory.c: what regions compute gets its place: lifetimes, reuse, offsets of what the items
 * of each frame's regions compute, in arenas of its own (in host memory, in the device's); those of
 * a loop are the scratch of its item, which comes in a frame further out. Where regions run as they
 * come, an item gets what those of another region used only if it may follow them. */
void plan_place_memory(struct region_find *f);
/* region_find.c: finds regions, their order, and where what they compute lies. */
int plan_find_regions(struct plan *plan, struct error *err);
/* plan_connect.c: then, what an iteration of each frame has, the edges between regions, and what is
 * to be done at each position. */
void plan_connect(struct plan *plan);
/* plan_locks.c: then, who locks variables; and when all is known of regions, what of them a device
 * may capture. */
void plan_find_locks(struct plan *plan);
void plan_find_segments(struct plan *plan);

#endif
