/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of a whole plan whose work the device has captured. The first step of a run enqueues
 * item by item, so that all memory is there and all that is made once has been made; the second is
 * captured, and it and those that follow are launched. Feeds and fetches then pass through host
 * memory of the run, variables have to be where they were, and what changes from step to step
 * is in the step block. Private to exec/run.
 */
#ifndef TF_EXEC_CAPTURED_H
#define TF_EXEC_CAPTURED_H

#include "exec/plan/plan_private.h"

struct run;

struct captured_write { /* of a variable that the plan uses */
    const void *data;   /* where it was */
    uint64_t updates;   /* in a step */
};

struct captured {
    struct device_graph *graph;    /* NULL: there is none */
    struct captured_write *writes; /* by lock of the plan */
    struct tensor *feeds;          /* what goes through: by feed, by fetch of the plan */
    struct tensor *fetches;
    bool has_run;    /* item by item */
    bool is_current; /* the step that runs was launched */
};

/* Whether the run that begins is to be launched. */
bool captured_may_run(const struct run *run);

/* With all variables of the plan locked: whether it is captured, now or before. If not, as it
 * cannot be or something is not where it was, the step has to run item by item. */
bool captured_prepare(struct run *run);

/* Then, with the locks still. */
int captured_launch(struct run *run, struct error *err);

/* When a step that was launched is over: its fetches. */
int captured_fetch(struct run *run, struct error *err);

void captured_release(struct run *run);

#endif
