/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames and iterations of a running step, and their contents. Private to exec/run.
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
    struct tensor tensor; /* empty for a reference, whose variable the plan knows */
    bool is_live;
};

/* An item in an iteration. */
struct region_call {
    struct call_host host; /* first: what call->executor points to */
    struct kernel_call call;
    int (*run)(struct kernel_call *call); /* the item's kernel, or what runs it */
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
    struct tensor *kept;      /* by output: its memory in captured work; NULL: no output has any */
    struct tensor **pointers; /* n_inputs + n_outputs */
    struct activation *activations;
    struct region_call *calls;     /* by position; NULL: no region has run in it yet */
    struct plain_call *plain;      /* likewise */
    struct tensor *carried;        /* of a loop that is an item: by input of that item */
    const struct step *bound_step; /* the step that calls of an order were last bound to, */
    uint64_t bound_tag;            /* and the tag */
    struct buffer *arenas[2];      /* in host memory, in the device's; once a region has run */
    void *placed[2];               /* base addresses for which outputs were placed */
    atomic_bool is_open;           /* calls and arenas are there; set under run->lock */
};

struct deferral {
    int item; /* the NextIteration */
    struct token value;
};

struct frame {
    const struct plan_frame *def;
    int index;
    struct frame *next;       /* among the children of the iteration, or idle */
    struct iteration *parent; /* NULL: the root, or a loop that is an item */
    struct iteration *oldest, *newest;
    int enters_left;
    bool *exited;                  /* by position in def->exits: a live value left there */
    VEC(struct deferral) deferred; /* values for the iteration after the newest */
    bool starts;                   /* one of them is alive: there will be such an iteration */
    VEC(struct deferral) invariants;
};

/* The state of a running kernel: the thread's, used for one kernel after the other so that it stays
 * in the cache; or the activation's, if the kernel may continue by itself. */
struct launch {
    struct activation *activation;
    temporary_vec temporaries;
    struct item_start start; /* for the trace */
    int result;              /* of an asynchronous kernel */
    int depth;               /* of nested regions, each run before an item of the last */
    struct error err;
};

/* The members that an activation with nothing to run needs come first, to lie in one cache line. */
struct activation {
    struct iteration *iteration;  /* this and the next are the same in every step */
    const struct out_edge *edges; /* of a region's only item; NULL: there are several items */
    int n_edges, first_output;
    bool is_cheap;    /* its whole region is */
    bool is_empty;    /* there is nothing to run */
    bool passes_dead; /* it has nothing to run if it is dead */

    bool is_dead;
    int n_locked; /* of `locks`, taken so far */
    int at, told; /* the next item; items before `told` have told others */
    struct activation *next;

    struct run *run; /* this and the next are the same in every step */
    const struct region *region;
    const struct item *head; /* the region's first item */
    int item;                /* number of `head` */
    struct launch *launch;   /* NULL until an asynchronous kernel first runs here */
    const variable_lock_vec *locks;
    struct variable_waiter waiter;
    struct deferred_work deferred;
};

/* Shares reference-counted memory; a value without a count is borrowed. */
static inline void share_value(struct tensor *to, const struct tensor *value)
{
    if (value->buffer)
        tensor_share(to, value);
    else
        *to = *value;
}

/* The tensor in which an item of a region leaves the value. */
static inline struct tensor *iteration_output(const struct plan *plan, struct iteration *it, int v)
{
    int from = plan->values.items[v].item;
    const struct item *item = &plan->items.items[from];
    return &it->outputs[item->first_output + v - item->out[0]];
}
/* Drops inputs of the item that came from outside of its region. */
void iteration_drop_inputs(const struct plan *plan, struct iteration *it, int item);
/* Drops outputs of the item that lie in no arena. */
void iteration_drop_outputs(const struct plan *plan, struct iteration *it, int item);
/* The tensor of a value, and that of an input of an item. */
struct tensor *iteration_value(struct run *run, struct iteration *it, int v);
struct tensor *iteration_input(struct run *run, struct iteration *it, int item, int input);

/* iteration.c; with run->lock held. */
struct iteration *iteration_new(struct run *run, struct frame *frame, int64_t number);
void iteration_drop(struct run *run, struct iteration *it);
/* Gives the root's iteration the arenas that the run has now. */
void iteration_place(struct run *run, struct iteration *it);
struct frame *frame_new(struct run *run, int index, struct iteration *parent);
void frame_drop(struct run *run, struct frame *frame);
/* Drops everything that a failed step left behind, and the root frame of any step. */
void frame_clear(struct run *run);
/* Drops what idle iterations hold, but not the run's memory, which they are in. */
void iterations_release(struct run *run);

/* Opens the iteration before a region of it runs. */
int region_open(struct run *run, struct iteration *it, struct error *err);
/* Drops the reference-counted values of a fixed order that has run. */
void iteration_clear(const struct plan *plan, struct iteration *it);

#endif
