/* SPDX-License-Identifier: Apache-2.0
 *
 * The dynamic executor. Private to libcommon/exec.
 *
 * By frames, edges and regions of the plan (exec/plan/region.h) dynamic_ready.c says what becomes
 * ready, and in which iterations, with memory from iteration.c; dynamic.c distributes
 * it over threads; region_run.c runs regions, loop.c loops that are one item. run.c begins and ends
 * a step, and runs a whole plan, which is one region, without all the rest for a thread that waits.
 *
 * Locking: `run.lock` guards frames, iterations, counters and the queue of one step; kernels run
 * without it.
 *
 * Variables: a step that only reads, and never waits for the outside, locks what it reads from its
 * beginning to its end. In any other an item locks a variable only while its kernel runs: nobody
 * ever waits for a lock while keeping one from others, but in the order of the variables' ids, so
 * that steps cannot wait for each other in a circle (whole plans: plan_locks.c). A tensor that
 * is the variable's memory shares it; on a device with memory of its own it is a copy.
 */
#ifndef TF_EXEC_DYNAMIC_H
#define TF_EXEC_DYNAMIC_H

#include "exec/device/arenas.h"
#include "exec/run/iteration.h"
#include "exec/step/device_step.h"
#include "exec/step/step.h"

struct run {
    struct plan *plan;
    struct step *step;
    struct tensor *feeds; /* an array of its own */
    struct tensor *fetches;
    struct step_done *done;  /* NULL: the thread that runs it waits for the end */
    struct step_waiter stop; /* aborts the rendezvous when the step stops; registered if `waits` */
    bool waits;
    struct frame *root;
    struct frame **idle_frames; /* by definition */
    bool *dead;                 /* of what is in order, by value, then by item; NULL: never */
    struct iteration **idle_iterations;
    struct run *next;

    /* Called when a lock, or an asynchronous kernel, was waited for; and when all is over. */
    void (*resume)(struct activation *a);
    void (*async_done)(struct executor *executor, int result);
    void (*conclude)(struct run *run);

    struct loop_run **loops;          /* by frame; NULL: not run yet */
    struct shared_arena *arenas[2];   /* that the root borrows in a step; NULL: none */
    struct segment_capture *captured; /* by segment; NULL: there is none, as of the next */
    struct tensor *kept_fetches;      /* where captured work has them */
    struct launch own;                /* of a whole plan */

    struct device_step on_device;
    struct event_waiter over; /* concludes it when what it has enqueued is over */
    struct activation keeper; /* of the locks that last as long as the step; of no region */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct activation *queue;   /* ready and expensive, in no particular order */
    struct activation *passing; /* ready, with nothing to run: what waits for it is told next */
    int active;                 /* activations queued, running, pending or put aside */
    int helpers;                /* that take from the queue, or will; not a thread that waits */
    atomic_bool failed;
    struct error err;
};

/* region_run.c */
/* When others may go on, they are told, and `give` runs those that take away what is made here;
 * before memory is taken for what leaves, and before what takes long where values leave in pieces,
 * `reclaim` is called. */
struct region_calls {
    void (*tell)(void *context, struct run *run, struct activation *a);
    void (*give)(void *context, struct run *run);
    void (*reclaim)(void *context, struct run *run, const struct launch *launch);
    void *context;
};
/* Runs items of the activation's region from where it stands. KERNEL_PENDING: it was put aside, or
 * its kernel goes on by itself, and the run may be over; 0: all have run; an error code: a whole
 * plan's region holds no lock. */
int region_run(struct run *run, struct launch *launch, const struct region_calls *calls);
/* When such a kernel is over, with launch->result: 0 or an error code. */
int region_end_async(struct run *run, struct launch *launch);
/* False: the activation was put aside until a lock is free. */
bool region_take_locks(struct activation *a, const variable_lock_vec *locks);
void region_give_locks(struct activation *a);
/* Gathers those of an item's inputs that are seen in another shape than they have, and variables
 * that others may write to. */
int region_gather(struct run *run, struct launch *launch, struct iteration *it, int item);
/* After an item: lets go of outputs that are not needed any more in the activation's region. */
void region_drop(const struct plan *plan, const struct activation *a, const struct region_item *at);
/* After all: lets go of what the region has computed, as far as it is counted. */
void region_release(struct run *run, struct activation *a);

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
void run_async_done(struct executor *executor, int result);

/* loop.c: what a run has of a loop. */
void loop_run_free(struct run *run, struct loop_run *loop);

/* dynamic_ready.c; all with run->lock held. Ready activations go to *ready. */
void ready_start_root(struct run *run, struct activation **ready);
/* Sends the outputs of an activation along its edges: of one that is over all; else those of its
 * region's items that have run and were not sent yet. */
void ready_propagate(struct run *run, struct activation *a, bool is_over,
                     struct activation **ready);
/* After a step without errors: an item outside of loops that never became ready, or NULL. */
const struct item *ready_find_waiting(const struct run *run);

/* ---- captured.c ---- */

/* Segments of a plan (exec/plan/plan_locks.c) whose work the device has captured. In the first
 * step of a run their items are enqueued one by one, so that all memory is there and all that is
 * made once has been made; in the second they are captured, and launched then and in those that
 * follow. Values that they take from elsewhere are where they were, or are copied there; values
 * that they give away and fetch have memory that stays with the run; variables have to be where
 * they were, and what changes from step to step is in the step block. */

/* Opens the run's part of its plan's segments. */
void captured_open(struct run *run);

/* Returns whether the segment that begins where the launch's activation stands is launched: *code
 * says how that went, KERNEL_PENDING: it was put aside. False: its items are to be enqueued one by
 * one. */
bool captured_run(struct run *run, struct launch *launch, int *code);

/* When a step is over: whether without a failure. */
void captured_over(struct run *run, bool is_good);

/* What they point to has moved: they are captured anew. */
void captured_forget(struct run *run);
void captured_release(struct run *run);

#endif
