/* SPDX-License-Identifier: Apache-2.0
 *
 * Segments of a plan (exec/plan/plan_capture.c) whose work the device has captured. In the first
 * step of a run their items are enqueued one by one, so that all memory is there and all that is
 * made once has been made; in the second they are captured, and launched then and in those that
 * follow. Values that they take from elsewhere are where they were, or are copied there; values
 * that they give away and fetch have memory that stays with the run; variables have to be where
 * they were, and what changes from step to step is in the step block. Private to exec/run.
 */
#ifndef TF_EXEC_CAPTURED_H
#define TF_EXEC_CAPTURED_H

#include "exec/plan/plan_private.h"

struct launch;
struct run;

/* Opens the run's part of its plan's segments. */
void captured_open(struct run *run);

/* Returns whether the segment that begins where the launch's activation stands is launched: *code
 * says how that went, KERNEL_PENDING: it was put aside. False: its items are to be enqueued one by
 * one. */
bool captured_run(struct run *run, struct launch *launch, int *code);

/* When a step is over: whether without a failure. */
void captured_over(struct run *run, bool is_good);

void captured_release(struct run *run);

#endif
