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

/* The attribute with the places of a node's inputs, in the plan's graph. */
#define PLAN_PLACE "_place"

/* plan_graph.c: prunes, and has the device's passes (fuse.h) rewrite the result; sets graph, feeds,
 * fed. fetch_edges gets the fetches in that graph. */
int plan_make_graph(struct plan *plan, const struct plan_request *request, struct edge *fetch_edges,
                    struct error *err);

/* plan_while.c: finds the frames of plan->graph, which of them are loops that can run as one item,
 * and whether a fixed order with planned memory will do. ERR_DATA if a value within a loop is
 * fetched. */
int plan_find_frames(struct plan *plan, const struct edge *fetches, struct error *err);
/* Returns whether the node only moves values into a loop that is an item, or to its next iteration,
 * so that the values have a fixed order. */
bool plan_is_wiring(const struct plan *plan, const struct node *node);
/* Prepares a node of a loop that is an item. Returns true if the node has no item of its own: its
 * outputs are then variables of the loop, or outputs of the loop's item. */
bool plan_add_wiring(struct plan *plan, const struct node *node);
/* Binds a node that has an item: its output goes into a loop, or into the next iteration of one. */
void plan_bind_wiring(struct plan *plan, const struct node *node);

/* Returns ERR_CANCELLED if the plan is no longer wanted. Called between the stages that may take
 * long with a large graph. */
static inline int plan_goes_on(const struct plan *plan, struct error *err)
{
    const struct step *step = plan->options.step;
    return step && atomic_load(&step->cancelled) && !atomic_load(&step->stop.stopped)
               ? error_set(err, ERR_CANCELLED, "cancelled while it was planned")
               : 0;
}

/* plan_prepare.c: values, items, prepared kernels, fetches. */
int plan_prepare(struct plan *plan, const struct edge *fetch_edges, struct error *err);
int plan_add_value(struct plan *plan, enum dtype type, const struct shape *shape);
int plan_add_item(struct plan *plan, const struct item *item);
bool item_may_be_dead(const struct plan *plan, int item);
/* Adds an item that makes a value of the same type and shape from `value`, as `item` says, and
 * returns the new value. plan_add_copy makes a copy in memory of the same kind. */
int plan_add_derived(struct plan *plan, struct item item, int value, bool on_device);
int plan_add_copy(struct plan *plan, int value);

/* plan_kernel.c: */
bool plan_has_known_shapes(const struct plan *plan, const struct node *node);
/* Prepares the item's kernel; the item has its inputs and outputs. */
int plan_prepare_kernel(struct plan *plan, struct item *item, struct error *err);
void plan_release_state(struct item *item);

/* plan_transfer.c: returns the value in the wanted memory: itself, or a copy, which all consumers
 * share if it is the same for all. -1 with the error set. */
int plan_in_memory(struct plan *plan, int value, bool on_device, const struct item *consumer,
                   struct error *err);
/* The value in row-major order: itself, or the result of a relayout item; -1 with the error set. */
int plan_row_major(struct plan *plan, int value, struct error *err);
/* Returns whether the node passes its value on within the memory of the plan's device, which is not
 * the host's: a Send or a Recv between devices that reach each other, or a reduction. */
bool plan_hands_over(const struct plan *plan, const struct node *node);
/* Returns whether a node, by its row, takes input i, or makes output i, in the device's memory, if
 * that is not the host's. */
bool plan_puts_on_device(const struct plan *plan, const struct kernel_row *row,
                         const struct node *node, bool is_output, int i);
/* Sets the item's code or built-in kernel. Returns false if the module does not have the code. */
bool plan_find_code(const struct plan *plan, struct item *item);
/* The item that copies a variable for this input alone; -1: none does. */
int plan_copy_for(const struct plan *plan, const struct item *item, int input);
/* The constant in host memory; NULL: the value is no constant. */
const struct tensor *plan_host_constant(const struct plan *plan, int value);

/* plan_fold.c: computes the item now, if that is possible; its outputs become constants. */
void plan_fold(struct plan *plan, struct item *item);

/* plan_order.c: finds the items' uses of variables, and orders them by the rule of graph/access.h;
 * ERR_DATA if they contradict each other. */
int plan_order_variables(struct plan *plan, struct error *err);

/* plan_views.c: items whose output is their input, perhaps in another shape, do not run: their
 * consumers see the input. `in_order`: handles the items of fixed orders, once these exist; else
 * those of dataflow, before regions are found. */
void plan_resolve_views(struct plan *plan, bool in_order);

/* plan_schedule.c: sorts items into `order` by their rank (-1: left out); within a rank, an item
 * comes after those that it waits for. ERR_INTERNAL if there is a cycle. */
int plan_sort(const struct plan *plan, const int *rank, int *order, int *n_order,
              struct error *err);

/* One thing that an item waits for in its iteration: an input, a control input, or `after`. */
struct before {
    int next; /* where to go on */
    int item;
    int input;     /* EDGE_CONTROL: none, only that the item is over */
    int slot;      /* output of that item; -1 */
    bool is_after; /* dead or alive */
    bool of_all;   /* set by the caller: a Merge waits for the iteration before, too */
};
/* Finds the next thing that the item waits for, from {0} on; false: there is none. */
bool plan_next_before(const struct plan *plan, int item, struct before *before);

/* plan_memory.c, when items are in order: finds values with reference-counted memory. */
void plan_find_counted(struct plan *plan);

/* plan_connect.c: sets the roles of items in the dataflow of regions. */
void plan_find_roles(struct plan *plan);
/* ---- regions ---- */

struct key {
    int ready, dead; /* sets of arrivals; of an async op, excluding its own */
    int level;
};

struct region_find {
    struct plan *plan;
    struct arrival_sets sets;
    struct key *keys;  /* by item */
    int *arrival;      /* by item: the first arrival of an async op */
    int *over_arrival; /* by frame: the arrival "the loop is over" */
    bool alone;        /* every item is a region */
    struct arena memory;
};

/* plan_memory.c: places what the items of each frame's regions compute: lifetimes, reuse, and
 * offsets in arenas of its own, in host memory and in the device's. The arena of a loop is the
 * scratch of its item, which belongs to a frame further out. Where regions run in no fixed order,
 * an item reuses memory of another region only if it may follow the last users. */
void plan_place_memory(struct region_find *f);
/* region_find.c: finds regions, their order, and the places of what they compute. */
int plan_find_regions(struct plan *plan, struct error *err);
/* The bytes that the item makes in outgoing memory, as far as they are known. */
double plan_outgoing_bytes(const struct plan *plan, int item);
/* plan_connect.c: after that, sets the contents of an iteration of each frame, the edges between
 * regions, and what is to be done at each position. */
void plan_connect(struct plan *plan);
/* plan_locks.c: after that, finds the items that lock variables, and, when regions are described,
 * the segments that a device may capture. */
void plan_find_locks(struct plan *plan);
void plan_find_segments(struct plan *plan);

#endif
