/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: a graph compiled for one set of feeds, fetches and targets. Everything that can be decided
 * once is decided here: what runs, in which order, with which kernel, and where its memory is.
 *
 * A plan runs as *regions*: items in a fixed order over an arena that was laid out by lifetimes. A
 * plan whose shapes are all known and which has no async op is *whole*: one region, which skips
 * branches that are not taken and in which a loop is one item. Any other plan is *dynamic*: async
 * ops separate its regions, and it has pending counts, a ready queue, frames and iterations. So has
 * a plan with control flow on a device with memory of its own.
 */
#ifndef TF_EXEC_PLAN_H
#define TF_EXEC_PLAN_H

#include "exec/device/device.h"
#include "exec/state/variable.h"
#include "exec/step/outgoing.h"
#include "graph/access.h"
#include "graph/edge_map.h"

/* The least number of pieces that a plan is cut into: one order where that is possible; regions
 * even where one order would do; or every item its own region, with no fusion and views not seen
 * through. The last two are for tests. */
enum plan_cut { CUT_WHOLE, CUT_REGIONS, CUT_ITEMS };

struct step;

struct plan_options {
    const struct kernel_table *kernels;
    struct device *device; /* runs all nodes: there is one executor per device */
    struct variable_store *variables;
    struct outgoing_memory *outgoing; /* for what other processes get; NULL: no special memory */
    struct arenas *arenas;            /* a session's, which its plans share; NULL: the plan's own */
    int threads; /* that run expensive kernels of a dynamic plan at once, each with a team of one;
                  * 0, 1: one thread, with the device's team */
    enum plan_cut cut;
    bool check_numerics;     /* stop at the first node whose float output is not finite */
    bool no_layouts;         /* keep everything row-major (tests) */
    unsigned without;        /* device passes to leave out, 1 << number (exec/plan/fuse.h) */
    bool spread;             /* kernels with little to do go to other threads, too (tests) */
    const struct step *step; /* for which the plan is made: that it is cancelled, unless it was
                              * stopped, ends the planning with ERR_CANCELLED; NULL: nothing
                              * does */
};

/* The place of a node's input among the reads and writes of a variable (struct access_place), as
 * seen by the loop that is `depth` loops deep; 0: outside of loops. */
struct plan_place {
    int node, input; /* -1: the input-th fetch */
    int depth, place;
    int is_copied; /* a copy, because without one parts would wait for each other */
};

/* The order of reads and writes that the plan of a part cannot see itself, because other parts use
 * the variables, too (exec/run/divide.h). */
typedef VEC(struct plan_place) plan_order;

/* What a step is to run, and a plan or several are made for. */
struct plan_request {
    const struct edge *feeds; /* n_feeds edges, any tensors of the graph */
    /* Their values, of which a plan takes types and shapes alone; unknown dimensions are allowed
     * there and make the plan dynamic. */
    const struct tensor *feed_values;
    int n_feeds;
    const struct edge *fetches;
    int n_fetches;
    const int *targets; /* node ids */
    int n_targets;
    /* By node, for each Recv: the shape that it receives with these feeds, as far as it is known.
     * NULL: the shape in the Recv's attribute. */
    const struct shape *received;
    const plan_order *order; /* NULL: the plan sees all uses of its variables */
};

/* Returns 0 if what is fed to an output has its type and a shape that fits; else ERR_DATA. */
int plan_check_fed(const struct node *node, const struct node_output *output, enum dtype type,
                   const struct shape *shape, struct error *err);

struct plan;

/* Errors are ERR_DATA and name the node and its script line. The graph must outlive the plan and
 * may grow, but not change. Feeding and fetching the same edge is allowed. */
int plan_new(const struct graph *graph, const struct plan_options *options,
             const struct plan_request *request, struct plan **plan, struct error *err);
void plan_free(struct plan *plan);

struct trace;
struct rendezvous;
struct step_waiter;
struct collective;
struct prefetched_batch;

/* Why a step has to stop, and who waits to be told. Only for the executor: exec/step/step.h. */
struct step_stop {
    atomic_bool stopped;
    pthread_t teller; /* is calling the waiter `told` */
    struct step_waiter *waiters, *told;
    struct error reason; /* the first that was given */
};

/* An object that a kernel keeps until the step is over: exec/step/step.h. */
struct step_resource {
    void *object;
    void (*release)(void *object);
};

/* The parts of a step besides tensors. */
struct step {
    int64_t number; /* 1, 2, ... as the driver counts; randomness is keyed by it */
    uint64_t seed;  /* --seed */
    uint32_t replica;
    uint64_t session;      /* that the step belongs to; 0: the process has only one */
    uint64_t incarnation;  /* of the worker that the step is for */
    atomic_bool cancelled; /* set from any thread: the step ends with ERR_CANCELLED when the running
                            * kernel is over; step_cancel ends it even if everything waits */
    struct trace *trace;   /* NULL: off */
    struct rendezvous *rendezvous; /* shared by the plans of the step; NULL: there is one plan */
    struct collective *collective; /* of the workers that run the step; NULL: there is one */
    struct prefetched_batch
        *prefetched; /* feeds that have been put on devices; NULL: none of them */
    VEC(struct step_resource) resources; /* the executor's; by handle - 1 */
    struct step_stop stop;
};

/* Runs one step. feeds[i] is host, row-major, of the planned type and a fitting shape, and is only
 * read. fetches[i] become host tensors that the caller releases. Any number of threads may run the
 * same plan at once. On failure no fetch is set and the error names the node. */
int plan_run(struct plan *plan, struct step *step, const struct tensor *feeds,
             struct tensor *fetches, struct error *err);

/* The waiter for a step that was started; its owner keeps it. `done` is called exactly once,
 * perhaps before the call that starts the step has returned, by whichever thread finished the step
 * and with no lock held. It gets 0, or a code and its error, which is valid during the call. `done`
 * may free or reuse feeds, fetches and the step, and may start other steps. */
struct step_done {
    void (*done)(struct step_done *done, int code, const struct error *err);
    bool computes; /* the thread that starts the step may run expensive kernels before it returns;
                    * else the process's helper threads run them */
    bool is_part;  /* the plan is one of several that make up the step, each on a device of its own:
                    * what kernels keep for the step stays until the caller, when all plans are
                    * done, calls step_end */
};

/* As plan_run, but returns when all that is left of the step waits: for a value of the rendezvous,
 * another asynchronous kernel, a variable that another step has locked, or a helper thread. The
 * thread that ends such a wait runs the cheap kernels that become ready by it. feeds and fetches
 * must stay until `done`. A step that fails or is cancelled aborts its rendezvous if it has one,
 * and ends when its kernels have. */
void plan_start(struct plan *plan, struct step *step, const struct tensor *feeds,
                struct tensor *fetches, struct step_done *done);

/* Gives the memory of finished steps back to the system; the next step allocates it again. Callable
 * from any thread, also while steps run. */
void plan_trim(struct plan *plan);

#endif
