/* SPDX-License-Identifier: Apache-2.0
 *
 * The dynamic executor. Private to libcommon/exec.
 *
 * An item runs when everything it waits for has arrived (the 2015 white paper, section 3.1; control
 * flow as in section 4.4 and in Yu et al., "Dynamic Control Flow in Large-Scale Machine Learning",
 * 2018). Each execution has a tag, a frame and an iteration: Enter sends its value into iteration 0
 * of a child frame, NextIteration into the next iteration, Exit into the parent. A value that was
 * not taken by Switch is dead, and deadness passes through everything but Merge.
 *
 * What is between points, where only running tells when or whether something comes, runs as
 * regions: items in a fixed order with planned memory, as in a static plan (region_find.c).
 *
 * dynamic_plan.c finds frames and edges once per plan, dynamic_locks.c locks; dynamic_ready.c says
 * what becomes ready, dynamic_frame.c in which iterations, with memory from dynamic_memory.c;
 * dynamic.c distributes it over threads, by the queue of dynamic_queue.c; dynamic_kernel.c runs
 * points, region_run.c regions. dynamic_step.c begins and ends a step.
 *
 * Locking: `run.lock` guards frames, iterations, counters and the queue of one step; kernels run
 * without it.
 *
 * Variables: a step that only reads, and never waits for the outside, locks what it reads from its
 * beginning to its end. In any other an item locks a variable only while its kernel runs: nobody
 * ever waits for a lock while keeping one from others, but in the order of the variables' ids, so
 * that steps cannot wait for each other in a circle (static plans: plan_schedule.c). A tensor that
 * is the variable's memory shares it; on a device with memory of its own it is a copy.
 */
#ifndef TF_EXEC_DYNAMIC_H
#define TF_EXEC_DYNAMIC_H

#include "exec/device/pool.h"
#include "exec/run/item.h"
#include "exec/step/deferred.h"

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
    struct variable_lock *locks; /* in the order in which they are taken */
    int n_locks;
};

struct region_item;

/* Items that run one after the other, by one thread: region_find.c. */
struct region {
    const struct region_item *items;
    int frame;
    int first, n; /* in the frame's order */
    int n_ready, level;
    int rank;      /* who comes first */
    bool is_cheap; /* all its items are */
    bool is_empty; /* none of them does anything */
    bool fetches;  /* one of them does */
    bool frees;    /* one is given what has left and come back, whose memory is then free */
    bool lets_go;  /* after it outputs are let go of that others have been given */
};

/* An item of a region, at its position. */
struct region_item {
    int item;
    bool gathers;            /* an input comes from elsewhere */
    bool looks;              /* where an input is, or its shape, is not what was sent */
    bool leads;              /* others wait for it */
    bool locks;              /* variables */
    bool makes_outgoing;     /* an output is large, and leaves the process */
    bool is_relieved;        /* what frees comes before it */
    bool rest_is_cheap;      /* what comes after it in the region */
    int first_drop, n_drops; /* outputs of the region that are not needed here after it */
};

/* What an item, or a region's first, still waits for in an iteration. */
struct counter {
    int pending;
    unsigned dead : 30, has_live : 1, fired : 1;
};

struct dynamic_frame {
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
    size_t arena_bytes[2];         /* of an iteration: in host memory, in the device's */
    bool *is_placed;               /* in them: by output */
    VEC(struct out_edge) over;     /* to items of the parent that run after the loop is over */
};

struct dynamic {
    struct dynamic_item *items;
    int n_items;                      /* that there is memory for */
    VEC(struct dynamic_frame) frames; /* 0: the root */
    VEC(struct region) regions;
    int *drops; /* values */
    struct out_edge *edges;
    int threads;      /* that run regions, and points that are not cheap, of a step at once */
    bool keeps_reads; /* `kept` are locked for reading as long as a step lasts */
    VEC(struct variable *) kept;   /* in the order of their ids */
    struct pool *pool, *host_pool; /* host_pool: NULL where the device's memory is the host's */
    struct run *idle_runs;         /* memory of steps that are over; under plan->lock */
};

/* A value on its way to an input. */
struct token {
    struct tensor tensor; /* empty for a reference: which variable is known from the plan */
    bool is_live;
};

struct activation; /* an item to be executed in an iteration */

/* An item of a region in an iteration. */
struct region_call {
    struct call_host host; /* first: what call->executor points to */
    struct kernel_call call;
};

struct iteration {
    struct frame *frame;
    int64_t number;
    uint64_t tag;    /* call->iteration */
    int outstanding; /* activations not yet over */
    int n_fired;
    int n_children;
    struct frame *children;
    struct iteration *next;   /* newer one of the frame, or idle */
    struct counter *counters; /* by local item */
    struct token *inputs;
    struct tensor *outputs;
    struct tensor **pointers; /* n_inputs + n_outputs */
    struct variable **out_refs;
    struct activation *activations;
    struct region_call *calls; /* by position; NULL: no region has run in it yet */
    struct plain_call *plain;  /* the same */
    struct buffer *arenas[2];  /* in host memory, in the device's; from the first region on */
    void *placed[2];           /* where outputs were placed last */
    atomic_bool is_open;       /* calls and arenas are there; set under run->lock */
};

struct deferred {
    int item; /* the NextIteration */
    struct token value;
};

struct frame {
    const struct dynamic_frame *def;
    int index;
    struct frame *parent, *next; /* next: among the children of the parent's iteration, or idle */
    struct iteration *parent_iteration;
    struct iteration *oldest, *newest;
    int n_live;
    int enters_left;
    bool *exited;                  /* by position in def->exits: a live value left there */
    VEC(struct deferred) deferred; /* values for the iteration after the newest */
    bool starts;                   /* one of them is alive: there will be one */
    VEC(struct deferred) invariants;
};

/* What a kernel needs while it runs: of the thread that runs it, and used for one after the other,
 * so that it stays in the cache; of the activation where the kernel may go on by itself. */
struct launch {
    struct call_host host; /* first: what call->executor points to */
    struct kernel_call call;
    struct activation *activation;
    temporary_vec temporaries;
    struct buffer *scratch;
    struct item_start start; /* for the trace */
    int result;              /* of an asynchronous kernel */
    int depth;               /* regions of whose items one waits for the next, for this */
    struct error err;
};

/* What one that does nothing takes comes first, to lie in one line of the cache. */
struct activation {
    struct iteration *iteration;  /* these are the same in every step: */
    const struct out_edge *edges; /* of the one item that there is; NULL: of several */
    int n_edges, first_output;
    bool is_cheap;    /* it is, or all of its region */
    bool is_empty;    /* a region in which there is nothing to run */
    bool passes_dead; /* or not if it is dead */

    bool is_dead;
    int n_locked; /* locks taken so far */
    int at, told; /* of a region: the next item; those before `told` have told others */
    struct activation *next;

    struct run *run;                 /* the same in every step, as the next: */
    const struct dynamic_item *head; /* the item, or the region's first */
    const struct region *region;     /* NULL: a point */
    int item;
    struct launch *launch; /* NULL until an asynchronous kernel first runs here */
    struct variable_waiter waiter;
    struct deferred_work deferred;
};

struct run {
    struct plan *plan;
    struct execution execution;
    struct step *step; /* of the execution, as the next two */
    const struct tensor *feeds;
    struct tensor *fetches;
    struct frame *root;
    struct frame **idle_frames; /* by definition */
    struct iteration **idle_iterations;
    struct run *next;

    struct device_step on_device;
    struct deferred_work deferred; /* begins a run that is started */
    struct event_waiter over;      /* concludes it when what it has enqueued is over */
    struct variable_waiter waiter;
    size_t n_kept; /* of the plan's `kept`, so far */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct activation *queue;   /* ready and expensive, in no particular order */
    struct activation *passing; /* ready, with nothing to run: what waits for it is told next */
    int active;                 /* activations queued, running, pending or put aside */
    int helpers;                /* that take from the queue, or will; not a thread that waits */
    atomic_bool failed;
    struct error err;
};

/* dynamic_plan.c: adds what the planner has made to what runs outside of loops. */
void dynamic_add_item(struct plan *plan, int item);
/* The innermost frame that both are in; the one below `outer` that `frame` is in. */
int dynamic_common_frame(const struct dynamic *d, int a, int b);
int dynamic_frame_below(const struct dynamic *d, int outer, int frame);

/* dynamic_locks.c: what each item locks while it runs, or all of the step. */
void dynamic_find_locks(struct plan *plan);

/* region_find.c: regions, their order and memory. */
int region_find(struct plan *plan, struct error *err);

/* region_prepare.c: when edges are known, what is to be done at each position. */
void region_prepare(struct plan *plan);
/* region_run.c */
/* When others may go on, they are told, and `give` runs those that take away what is made here;
 * before memory is taken for what leaves, and before what takes long where values leave in pieces,
 * `relieve` is called. */
struct region_calls {
    void (*tell)(void *context, struct run *run, struct activation *a);
    void (*give)(void *context, struct run *run);
    void (*relieve)(void *context, struct run *run, const struct launch *launch);
    void *context;
};
/* Runs items of the activation's region from where it stands. KERNEL_PENDING: it was put aside, and
 * the run may be over; 0: all have run; an error code. */
int region_run(struct run *run, struct launch *launch, const struct region_calls *calls);
/* Of one that was put aside and is not to go on. */
void region_give_locks(const struct run *run, struct activation *a);
/* After all: lets go of what the region has computed, as far as it is counted. */
void region_release(struct run *run, struct activation *a);
/* region_memory.c. Lets go of an iteration's arenas, or of all that it has for regions. */
void region_close(struct iteration *it);
void region_free(struct iteration *it);

/* dynamic_queue.c; with run->lock. What leads to most comes first. */
void run_push(struct run *run, struct activation *a);
struct activation *run_pop(struct run *run); /* NULL: it is empty */
/* Without the lock: one that lets go of memory in which values have left; NULL: none is ready. */
struct activation *run_pop_free(struct run *run);

/* dynamic.c; without run->lock, between deferred_begin and deferred_end. */

/* Runs a list of activations and whatever of their consequences stays with this thread: cheap ones,
 * and with `computes` expensive ones. When nothing is left of a run that was started, it has been
 * concluded and may be another step's. */
void run_execute(struct run *run, struct activation *list, bool computes);
/* Begins a step and runs what stays with this thread; without `computes` the run may be over. */
void run_begin(struct run *run, bool computes);
/* Takes from the queue until it is empty; with the lock held. */
void run_drain(struct run *run);
/* The same without the lock, for one of run->helpers, which ends with it. The run may be over. */
void run_help(struct run *run);
/* Goes on with an activation that has waited. */
void run_resume(struct activation *a);
void run_async_done(struct call_host *host, int result);

/* dynamic_step.c. Everything is over and nobody touches the run any more. */
void run_conclude(struct run *run);

/* dynamic_kernel.c. False: the activation was put aside until a lock is free. */
bool kernel_take_locks(struct activation *a, const struct dynamic_item *di);
void kernel_give_locks(struct activation *a, const struct dynamic_item *di);
/* What the item reads of a variable: its own memory, shared; where it is written in place a copy
 * for kernels that may take long without computing. */
int kernel_gather_variable(struct run *run, const struct item *item, int i, struct token *input,
                           struct error *err);
/* Sets what is the same in every step; returns the call's inputs, which are to be set. */
struct tensor **kernel_make_call(struct run *run, struct iteration *it, int item,
                                 struct call_host *host, struct kernel_call *call);
/* Sets what is of this step, iteration and launch. */
void kernel_bind(struct run *run, struct launch *launch, const struct iteration *it,
                 struct call_host *host, struct kernel_call *call);
/* What it is run with: `own` of the thread, or the activation's. */
struct launch *kernel_launch(struct run *run, struct activation *a, struct launch *own);
/* KERNEL_PENDING, 0 or an error code; when it is pending the run may be over. */
int kernel_run(struct run *run, struct launch *launch);
/* After the kernel: 0 or an error code. */
int kernel_finish(struct run *run, struct launch *launch, int result);
/* Lets go of inputs, temporary memory and locks. */
void kernel_release_inputs(struct run *run, struct launch *launch);

/* dynamic_memory.c; with run->lock held. */
struct iteration *iteration_new(struct run *run, struct frame *frame, int64_t number);
void iteration_drop(struct run *run, struct iteration *it);
struct frame *frame_new(struct run *run, int index, struct frame *parent,
                        struct iteration *parent_iteration);
void frame_drop(struct run *run, struct frame *frame);
/* Drops everything that a failed step left behind, and the root frame of any step. */
void frame_clear(struct run *run);
void frame_free_idle(struct run *run);

/* dynamic_ready.c; all with run->lock held. Ready activations go to *ready. */
void ready_start_root(struct run *run, struct activation **ready);
/* Of a region: the outputs of those of the items that have run and were not sent yet. */
void ready_propagate_items(struct run *run, struct activation *a, struct activation **ready);
/* Sends the outputs of an activation that is over along its edges. */
void ready_propagate(struct run *run, struct activation *a, struct activation **ready);
/* After a step without errors: an item outside of loops that never became ready; NULL: none. */
const struct item *ready_find_waiting(const struct run *run);
/* For dynamic_frame.c, from within these: sends a value of an item, and that the item is over, into
 * an iteration; `value` of an edge that carries one. */
void ready_send(struct run *run, struct iteration *to, int item, const struct token *value,
                struct activation **ready);
void ready_deliver(struct run *run, struct iteration *it, const struct out_edge *edge,
                   const struct tensor *value, bool is_live, struct activation **ready);

/* dynamic_frame.c, the same. Where the output of an op that moves values between iterations goes.
 */
void frame_move(struct run *run, struct activation *a, const struct token *value,
                struct activation **ready);
/* Ends the iteration, and those behind it, if nothing of it is left. */
void frame_check_iteration(struct run *run, struct iteration *it, struct activation **ready);

#endif
