/* SPDX-License-Identifier: Apache-2.0
 *
 * The dynamic executor. Private to libcommon/exec.
 *
 * It runs the frames, edges and regions of a plan (exec/plan/region.h). dynamic_ready.c finds what
 * becomes ready, and in which iterations, whose memory is from iteration.c; dynamic.c distributes
 * that over threads; region_run.c runs regions, loop.c loops that are one item. run.c begins and
 * ends a step; if a thread waits for a whole plan, run.c runs its one region without all the rest.
 *
 * Locking: `run.lock` guards frames, iterations, counters and the queue of one step; kernels run
 * without it.
 *
 * Variables: a step that only reads, and never waits for the outside, locks the variables that it
 * reads from beginning to end. In any other step an item locks a variable only while its kernel
 * runs. A thread that holds locks waits for another only in the order of the variables' ids, so
 * steps cannot deadlock (whole plans: plan_locks.c). A tensor that is a variable's memory shares
 * it; on a device with memory of its own the tensor is a copy.
 */
#ifndef TF_EXEC_DYNAMIC_H
#define TF_EXEC_DYNAMIC_H

#include "exec/device/arenas.h"
#include "exec/run/iteration.h"
#include "exec/step/device_step.h"
#include "exec/step/step.h"

/* The memory of a frame that is not in use. */
struct idle_frame {
    struct frame *frames;
    struct iteration *iterations;
    struct loop_run *loop; /* which is one item; NULL: it has not run yet */
};

struct run {
    struct plan *plan;
    struct arena memory; /* of the arrays, frames and iterations; guarded by `lock` */
    struct step *step;
    struct tensor *feeds, *fetches; /* arrays of its own */
    struct tensor *results;         /* the caller's: what it gets of the fetches */
    struct step_done *done;         /* NULL: the thread that runs the step waits for its end */
    struct step_waiter stop; /* aborts the rendezvous when the step stops; registered if `waits` */
    bool waits;
    struct frame *root;
    struct idle_frame *idle; /* by index of the frame */
    bool *dead;              /* for fixed orders: by value, then by item; NULL: nothing dies */
    struct run *next;

    struct shared_arena *arenas[2];   /* that the root borrows during a step; NULL: none */
    struct segment_capture *captured; /* by segment */
    struct tensor *kept_fetches;      /* fetches in the memory that captured work writes to */
    struct launch own;                /* of a whole plan */

    struct device_step on_device;
    struct event_waiter over; /* concludes the run when the work it has enqueued is over */
    struct activation keeper; /* holds locks for the whole step; has no region */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct activation *queue;   /* ready and expensive, in no particular order */
    struct activation *passing; /* ready, with nothing to run: their consumers are told next */
    int active;                 /* activations queued, running, pending or put aside */
    int helpers;                /* threads that take from the queue, or will */
};

/* A run that fails stops its step, and a step that stops ends its runs with its reason. */
static inline bool run_is_stopped(const struct run *run)
{
    return atomic_load(&run->step->stop.stopped);
}

/* region_run.c */
/* Runs items of the activation's region from its position. What becomes ready meanwhile, and stays
 * with this thread, goes to *mine (NULL: no other region waits for this one). KERNEL_PENDING: the
 * activation was put aside, or its kernel continues by itself, and the run may be over; 0: all
 * items have run; an error code: a whole plan's region holds no lock. */
int region_run(struct run *run, struct launch *launch, struct activation **mine);
/* Called when an asynchronous kernel is over, with launch->result: 0 or an error code. */
int region_end_async(struct run *run, struct launch *launch);
/* Returns false if the activation was put aside until a lock is free. */
bool region_take_locks(struct activation *a, const variable_lock_vec *locks);
void region_give_locks(struct activation *a);
/* Gathers an item's inputs that it sees in another shape than they have, and variables that others
 * may write to. */
int region_gather(struct run *run, struct launch *launch, struct iteration *it, int item);
/* After an item: drops outputs that are no longer needed in the activation's region. */
void region_drop(const struct plan *plan, const struct activation *a, const struct region_item *at);
/* After the region: drops its reference-counted results. */
void region_release(struct run *run, struct activation *a);

/* dynamic.c; called without run->lock, between deferred_begin and deferred_end. */

/* Begins a step and runs what stays with this thread; without `computes` the run may be over. */
void run_begin(struct run *run, bool computes);
/* Runs activations from the queue until it is empty; with the lock held. */
void run_drain(struct run *run);
/* As run_drain, without the lock, for one of run->helpers, which it ends. The run may be over. */
void run_help(struct run *run);
/* Continues an activation that has waited for a lock. */
void run_resume(struct variable_waiter *waiter);
void run_async_done(struct executor *executor, int result);

/* Called by a region that runs. The first: its items have made values that others wait for. */
void run_tell(struct run *run, struct activation *a, struct activation **mine);
/* Runs those of *mine that send. */
void run_give(struct run *run, struct activation **mine);
/* Called before memory is allocated for a large outgoing value, which reuses that of sent ones, and
 * before expensive items, if such values are sent in pieces: runs regions that free such memory, or
 * make the next piece. */
void run_reclaim(struct run *run, const struct launch *launch, struct activation **mine);

/* run.c: ends a run that nobody waits for, of which nothing is active. */
void run_conclude(struct run *run);

/* loop.c: a run's state of a loop. */
void loop_run_free(struct run *run, struct loop_run *loop);

/* dynamic_ready.c; all with run->lock held. Ready activations go to *ready. */
void ready_start_root(struct run *run, struct activation **ready);
/* Sends the outputs of an activation along its edges: with `is_over` all of them; else those of
 * items of the region that have run and whose outputs were not sent yet. */
void ready_propagate(struct run *run, struct activation *a, bool is_over,
                     struct activation **ready);
/* After a step without errors: an item outside of loops that never became ready, or NULL. */
const struct item *ready_find_waiting(const struct run *run);

/* ---- captured.c ---- */

/* Segments of a plan (exec/plan/plan_locks.c) whose work the device has captured. In the first step
 * of a run their items are enqueued one by one, so that all memory is allocated and everything that
 * is made once has been made; the second step captures them, and launches them, as do those that
 * follow. Values from outside of a segment must be in the same place, or are copied there; values
 * that others take, and fetches, have memory that stays with the run; variables must not have
 * moved, and data that change from step to step are in the step block. */

/* Opens the run's part of its plan's segments. */
void captured_open(struct run *run);

/* Returns true if the segment at the position of the launch's activation is launched: *code is the
 * result; KERNEL_PENDING: it was put aside. False: its items must be enqueued one by one. */
bool captured_run(struct run *run, struct launch *launch, int *code);

/* At the end of a step. */
void captured_over(struct run *run, bool is_good);

/* The memory that segments point to has moved: they are captured anew. */
void captured_forget(struct run *run);
void captured_release(struct run *run);

#endif
