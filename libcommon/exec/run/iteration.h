/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames and iterations of a step that runs: which there are, and what they have. Private to
 * exec/run.
 */
#ifndef TF_EXEC_ITERATION_H
#define TF_EXEC_ITERATION_H

#include "exec/plan/region.h"
#include "exec/run/item.h"

struct run;

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

/* dynamic_memory.c; with run->lock held. */
struct iteration *iteration_new(struct run *run, struct frame *frame, int64_t number);
void iteration_drop(struct run *run, struct iteration *it);
struct frame *frame_new(struct run *run, int index, struct frame *parent,
                        struct iteration *parent_iteration);
void frame_drop(struct run *run, struct frame *frame);
/* Drops everything that a failed step left behind, and the root frame of any step. */
void frame_clear(struct run *run);
void frame_free_idle(struct run *run);

/* dynamic_frame.c, with run->lock held. Where the output of an op that moves values between
 * iterations goes.
 */
void frame_move(struct run *run, struct activation *a, const struct token *value,
                struct activation **ready);
/* Ends the iteration, and those behind it, if nothing of it is left. */
void frame_check_iteration(struct run *run, struct iteration *it, struct activation **ready);

/* region_memory.c: before a region of the iteration runs. */
int region_open(struct run *run, struct iteration *it, struct error *err);
/* Lets go of an iteration's arenas, or of all that it has for regions. */
void region_close(struct iteration *it);
void region_free(struct iteration *it);

#endif
