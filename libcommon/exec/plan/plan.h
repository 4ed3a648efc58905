/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: a graph compiled for one set of feeds, fetches and targets. Everything that can be decided
 * once is decided here: what runs, in which order, with which kernel, where its memory is.
 *
 * What runs is *regions*: items in a fixed order over an arena that was laid out by lifetimes. A
 * plan whose shapes are all known and which has no asynchronous kernel is *whole*: one region, of
 * which branches that are not taken are passed over, and in which a loop is one item. Any other has
 * regions between points at which values come or go, with pending counts, a ready queue, frames and
 * iterations. So has one with control flow on a device with memory of its own.
 */
#ifndef TF_EXEC_PLAN_H
#define TF_EXEC_PLAN_H

#include "exec/device/device.h"
#include "exec/state/variable.h"
#include "exec/step/outgoing.h"
#include "graph/access.h"
#include "graph/edge_map.h"

/* How finely a plan is cut, at least: one order where that will do; regions though one order would
 * do; every item a region, of which nothing is fused and no view is seen through (both for tests).
 */
enum plan_cut { CUT_WHOLE, CUT_REGIONS, CUT_ITEMS };

struct plan_options {
    const struct kernel_table *kernels;
    struct device *device; /* of all nodes: there is one executor per device */
    struct variable_store *variables;
    struct outgoing_memory *outgoing; /* for what other processes get; NULL: as for all else */
    struct arenas *arenas;            /* a session's, which its plans share; NULL: the plan's own */
    int threads; /* that run expensive kernels of a dynamic plan at once, each with a team of one;
                  * 0, 1: one, with the device's team */
    enum plan_cut cut;
    bool check_numerics; /* stop at the first node whose float output is not finite */
    bool no_layouts;     /* keep everything row-major (tests) */
    unsigned without;    /* device passes that are left out, 1 << number (exec/plan/fuse.h) */
    bool spread;         /* kernels with little to do go to other threads, too (tests) */
    const atomic_bool *stopped;   /* NULL, or while true `cancelled` is not looked at */
    const atomic_bool *cancelled; /* looked at while the plan is made: it ends with ERR_CANCELLED.
                                   * NULL: nobody ends it */
};

struct plan_feed {
    struct edge edge; /* any tensor of the graph */
    enum dtype type;
    struct shape shape; /* unknown dimensions are allowed and make the plan dynamic */
};

/* Where a node's input has a variable among its reads and writes (struct access_place), as the loop
 * sees it that is so many loops deep; 0: outside of loops. */
struct plan_place {
    int node, input; /* -1: the input-th fetch */
    int depth, place;
    int is_copied; /* a read that would wait for what waits for it, by other parts */
};

/* The order of reads and writes that the plan of a part does not see: those of variables where it
 * might find another one, sorted by node (exec/run/divide.h). */
typedef VEC(struct plan_place) plan_order;
void plan_order_sort(plan_order *order);

struct plan_request {
    const struct plan_feed *feeds;
    int n_feeds;
    const struct edge *fetches;
    int n_fetches;
    const int *targets; /* node ids */
    int n_targets;
    /* By node, of each Recv: the shape of what it gets with these feeds, as far as it is known.
     * NULL: what the Recv says. */
    const struct shape *received;
    const plan_order *order; /* NULL: the plan sees all there is */
};

/* Returns 0 if what an output is fed has its type, and a shape that fits; else ERR_DATA. */
int plan_check_fed(const struct node *node, const struct node_output *output, enum dtype type,
                   const struct shape *shape, struct error *err);

struct plan;

/* ERR_DATA with the node and its script line. The graph must outlive the plan and may grow, but not
 * change. Feeding and fetching the same edge is allowed. */
int plan_new(const struct graph *graph, const struct plan_options *options,
             const struct plan_request *request, struct plan **plan, struct error *err);
void plan_free(struct plan *plan);

struct trace;
struct step_resources;
struct rendezvous;
struct step_waiter;
struct collective;
struct prefetched_batch;

/* Why a step has to stop, and who waits to be told. The executor's own: exec/step/step.h. */
struct step_stop {
    atomic_bool stopped;
    bool is_telling; /* thread `teller` calls waiters; now `told` */
    pthread_t teller;
    struct step_waiter *waiters, *told;
    struct error reason; /* the first */
};

/* The parts of a step besides tensors. */
struct step {
    int64_t number; /* 1, 2, ... as the driver counts; randomness is keyed by it */
    uint64_t seed;  /* --seed */
    uint32_t replica;
    uint64_t session;      /* that the step is of; 0: there is no other in the process */
    uint64_t incarnation;  /* of the worker that the step is for */
    atomic_bool cancelled; /* set from any thread: the step ends with ERR_CANCELLED when the kernel
                            * that runs is over; step_cancel ends it even if all wait */
    struct trace *trace;   /* NULL: off */
    struct rendezvous *rendezvous; /* of the plans that make up the step; NULL: there is one */
    struct collective *collective; /* of the workers that run the step; NULL: there is one */
    struct prefetched_batch
        *prefetched;                  /* of its feeds, what is on devices already; NULL: nothing */
    struct step_resources *resources; /* the executor's: exec/step/step.h */
    struct step_stop stop;
};

/* Runs one step. feeds[i] is host, row-major, of the planned type and a fitting shape, and is only
 * read. fetches[i] become host tensors that the caller releases. Any number of threads may run the
 * same plan at once. On failure no fetch is set and the error names the node. */
int plan_run(struct plan *plan, struct step *step, const struct tensor *feeds,
             struct tensor *fetches, struct error *err);

/* The waiter for a step that was started; lives with its owner. `done` is called exactly once,
 * perhaps before the call that starts the step has returned, by whichever thread finished the step
 * and with no lock held: with 0, or with a code and its error, which is valid during the call. In
 * it feeds, fetches and the step may be freed or used again, and other steps may be started. */
struct step_done {
    void (*done)(struct step_done *done, int code, const struct error *err);
    bool computes; /* the thread that starts the step may run expensive kernels before it returns;
                    * else they are left to the process's helper threads */
    bool is_part;  /* the plan is one of several that make up the step, each on a device of its
                    * own: what kernels keep for the step stays until the caller, when all are
                    * over, calls step_end */
};

/* As plan_run, but returns when all that is left of the step waits: for a value of the rendezvous,
 * another asynchronous kernel, a variable that another step has locked, a helper thread. Whoever
 * ends such a wait runs the cheap kernels that become ready by it. feeds and fetches must stay
 * until `done`. A step that fails, or is cancelled, aborts its rendezvous if it has one, and ends
 * when its kernels have. */
void plan_start(struct plan *plan, struct step *step, const struct tensor *feeds,
                struct tensor *fetches, struct step_done *done);

/* Gives memory of steps that are over back to the system; the next step gets some anew. Any thread,
 * also while steps run. */
void plan_trim(struct plan *plan);

/* ---- what a plan is, for --dump-plan, the cost model and tests ---- */

struct plan_item {           /* one kernel, in order */
    const struct node *node; /* NULL: made by the planner (a change of layout) */
    const char *name, *kernel;
    int64_t arena_offset;   /* of output 0; -1: none (a variable, an alias, memory of the step) */
    bool on_host;           /* output 0 is, on a device with memory of its own */
    size_t bytes;           /* of output 0 */
    int live_from, live_to; /* first and last item that needs output 0, for its memory; -1: none */
    int region;             /* of a dynamic plan; -1: a point */
};

bool plan_is_whole(const struct plan *plan); /* one order runs it: it is static */
int plan_n_regions(const struct plan *plan);
int plan_items(const struct plan *plan, const struct plan_item **items);
size_t plan_peak_bytes(const struct plan *plan);

#endif
