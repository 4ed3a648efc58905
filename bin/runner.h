/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the steps of tf-exec: in a session of this process, or as a worker, a task of a cluster that
 * drives the others. The driver is the same for both; a runner gives it a session or a worker to
 * run on, gives variables their values, and knows whose turn it is to end and to save.
 *
 * For one thread. The order of calls: runner_open, runner_start, then for each step
 * runner_begins, the driver's step and runner_step, until it is over; at last runner_end and
 * runner_close.
 */
#ifndef TF_BIN_RUNNER_H
#define TF_BIN_RUNNER_H

#include "checkpoint/job/saving.h"
#include "cli/tool.h"
#include "exec/device/device_set.h"
#include "graph/join.h"
#include "ps/shard.h"
#include "transport/session/worker.h"

struct runner_options {
    struct tool *tool;
    struct stream_graph *joined; /* the graph; these three outlive the runner */
    struct driver *driver;       /* its graph and name are set */
    struct saving *saving;
    struct device_options device;
    uint64_t seed;
    bool check;       /* stop at the first value that is not finite */
    unsigned without; /* plan_options */
    bool plan_only;   /* nothing is run */
};

struct runner {
    struct runner_options options;
    struct worker *worker;     /* the task of a cluster that it is; NULL: it has a session, ... */
    struct device_set devices; /* ... on these */
    struct shard *shard;       /* answers questions about a worker's variables; NULL: it has none */
    int64_t first;             /* the step before the first that it runs; INT64_MAX: none */
    double waited;             /* seconds, in the present wait for feeds */
    bool ends;                 /* set by the caller: training is to end, as after a signal */
    bool was_stopped;          /* by another worker, which was asked to end */
};

/* Makes a worker if --task names one. Close it in any case. */
struct runner *runner_new(const struct runner_options *options);
void runner_close(struct runner *runner); /* NULL: nothing */

/* Opens it; unless only a plan is wanted, first checks what is to be restored and saved. */
int runner_open(struct runner *runner, struct error *err);

/* Starts it, and opens the store that it saves to. */
int runner_start(struct runner *runner, struct error *err);

/* Returns whether every variable is in this process, or in every process of its job. */
bool runner_has_all_variables(const struct runner *runner);
/* Returns whether all workers take their steps together. Then they may gather rows
 * (worker_exchange), and a worker saves before it leaves, so that what the next one saves is
 * newer. */
bool runner_goes_together(const struct runner *runner);

/* Called before a step; returns false if the step is not to be run. */
bool runner_begins(struct runner *runner);
/* Called after a step; returns whether to end, because of a signal or of another worker. */
bool runner_is_over(struct runner *runner);
/* Called after a successful step: does what others wait for. `is_last`: once more after the last
 * step, if that is not settled, to settle it. */
int runner_stepped(struct runner *runner, bool is_last, struct error *err);
/* Returns whether the variables are those of this step for all: else only steps go on. */
bool runner_is_settled(const struct runner *runner);
/* Called then: saves to the store if a checkpoint is due. */
int runner_step(struct runner *runner, struct error *err);
/* Returns by which step the others know what is done after this one. */
int64_t runner_meets_at(const struct runner *runner);
/* Return whether this process saves; whether others take part in each save: then each says after a
 * step, and before it ends, whether it is about to save. */
bool runner_saves(const struct runner *runner);
bool runner_saves_together(const struct runner *runner);

/* Returns whether the steps ended well, but at another worker's request, before the last. */
bool runner_was_stopped(struct runner *runner);

/* Returns whether this process has run a step. */
bool runner_has_run(const struct runner *runner);

/* Called after the last step: leaves, and saves what there is to save. `code` is 0, or the code of
 * being asked to end in a wait for feeds, which is no failure. `has_values`: of runner_start. */
int runner_end(struct runner *runner, bool has_values, int code, struct error *err);

#endif
