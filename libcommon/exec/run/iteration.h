/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames and iterations of a step that runs: which there are, and what they have. Private to
 * exec/run.
 */
#ifndef TF_EXEC_ITERATION_H
#define TF_EXEC_ITERATION_H

#include "exec/device/deferred.h"
#include "exec/plan/plan_private.h"
#include "exec/run/item.h"
#include "exec/state/variable.h"

struct run;

/* A value on its way to an input. */
struct token {
    struct tensor tensor; /* empty for a reference: which variable is known from the plan */
    bool is_live;
};

/* An item in an iteration. */
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
    struct frame *children;
    struct iteration *next;   /* newer one of the frame, or idle */
    struct counter *counters; /* by local item */
    struct token *inputs;
    struct tensor *outputs;
    struct tensor *kept; /* by output: where captured work has it in all steps; NULL: none is */
    struct tensor **pointers; /* n_inputs + n_outputs */
    struct activation *activations;
    struct region_call *calls;     /* by position; NULL: no region has run in it yet */
    struct plain_call *plain;      /* the same */
    struct tensor *carried;        /* of a loop in order: by input of its item */
    const struct step *bound_step; /* that calls of an order were told last, */
    uint64_t bound_tag;            /* and the tag */
    struct buffer *arenas[2];      /* in host memory, in the device's; from the first region on */
    void *placed[2];               /* where outputs were placed last */
    atomic_bool is_open;           /* calls and arenas are there; set under run->lock */
};

struct deferral {
    int item; /* the NextIteration */
    struct token value;
};

struct frame {
    const struct plan_frame *def;
    int index;
    struct frame *parent, *next; /* next: among the children of the parent's iteration, or idle */
    struct iteration *parent_iteration;
    struct iteration *oldest, *newest;
    int enters_left;
    bool *exited;                  /* by position in def->exits: a live value left there */
    VEC(struct deferral) deferred; /* values for the iteration after the newest */
    bool starts;                   /* one of them is alive: there will be one */
    VEC(struct deferral) invariants;
};

/* What a kernel needs while it runs: the thread's, used for one kernel after the other, so that it
 * stays in the cache; the activation's where the kernel may go on by itself. */
struct launch {
    struct activation *activation;
    temporary_vec temporaries;
    struct item_start start; /* for the trace */
    int result;              /* of an asynchronous kernel */
    int depth;               /* regions of whose items one waits for the next, for this */
    struct error err;
};

/* Members that an activation which does nothing uses come first, to lie in one line of the cache.
 * */
struct activation {
    struct iteration *iteration;  /* these are the same in every step: */
    const struct out_edge *edges; /* of the one item that there is; NULL: of several */
    int n_edges, first_output;
    bool is_cheap;    /* all of its region is */
    bool is_empty;    /* there is nothing to run */
    bool passes_dead; /* or not if it is dead */

    bool is_dead;
    int n_locked; /* of `locks`, taken so far */
    int at, told; /* the next item; those before `told` have told others */
    struct activation *next;

    struct run *run; /* the same in every step, as the next: */
    const struct region *region;
    const struct item *head; /* its first */
    int item;                /* which that is */
    struct launch *launch;   /* NULL until an asynchronous kernel first runs here */
    const variable_lock_vec *locks;
    struct variable_waiter waiter;
    struct deferred_work deferred;
};

/* Shares memory that is counted; any other is seen where it is. */
static inline void share_value(struct tensor *to, const struct tensor *value)
{
    if (value->buffer)
        tensor_share(to, value);
    else
        *to = *value;
}

/* The place where an item of a region leaves the value. */
static inline struct tensor *iteration_output(const struct plan *plan, struct iteration *it, int v)
{
    int from = plan->values.items[v].item;
    const struct item *item = &plan->items.items[from];
    return &it->outputs[item->first_output + v - item->out[0]];
}
/* Lets go of what an item was given that came from elsewhere. */
void iteration_drop_inputs(const struct plan *plan, struct iteration *it, int item);
/* Lets go of what it has made that lies in no arena. */
void iteration_drop_outputs(const struct plan *plan, struct iteration *it, int item);
/* Where a value is, and what an item of a region is given. */
struct tensor *iteration_value(struct run *run, struct iteration *it, int v);
struct tensor *iteration_input(struct run *run, struct iteration *it, int item, int input);

/* iteration.c; with run->lock held. */
struct iteration *iteration_new(struct run *run, struct frame *frame, int64_t number);
void iteration_drop(struct run *run, struct iteration *it);
/* The root's borrows the arenas that the run has now. */
void iteration_place(struct run *run, struct iteration *it);
struct frame *frame_new(struct run *run, int index, struct frame *parent,
                        struct iteration *parent_iteration);
void frame_drop(struct run *run, struct frame *frame);
/* Drops everything that a failed step left behind, and the root frame of any step. */
void frame_clear(struct run *run);
void frame_free_idle(struct run *run);

/* Opens a region of the iteration before it runs. */
int region_open(struct run *run, struct iteration *it, struct error *err);
/* Lets go of the counted values of an order that was run. */
void iteration_clear(const struct plan *plan, struct iteration *it);

#endif
