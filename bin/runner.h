/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the steps of tf-exec: in a session of this process, or as a worker, a task of a cluster that
 * drives the others. The driver is the same for both; a runner gives it a session or a worker to
 * run on, gives variables their values, and knows whose turn it is to end and to save.
 *
 * For one thread. The order of calls: runner_open, runner_start, then for each step begins, the
 * driver's step and runner_step, until is_over; at last runner_end and runner_close.
 */
#ifndef TF_BIN_RUNNER_H
#define TF_BIN_RUNNER_H

#include "checkpoint/job/saving.h"
#include "cli/tool.h"
#include "exec/step/collective.h"
#include "graph/join.h"

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

/* The source of the variables' first values. */
struct runner_origin {
    struct stream_reader *reader; /* of --restore; NULL: none */
    bool is_restored;             /* variables have their values, of step saving->resumed */
};

struct runner {
    const struct runner_kind *kind;
    struct runner_options options;
    int64_t first;    /* the step before the first that this process runs; INT64_MAX: none */
    bool ends;        /* set by the caller: training is to end, as after a signal */
    bool was_stopped; /* by another worker, which was asked to end */
};

/* The calls of a kind. Those that can fail return an error code. */
struct runner_kind {
    /* Returns whether every variable is in this process, or in every process of its job. Called
     * before open. NULL: yes.
     */
    bool (*has_all_variables)(const struct runner *runner);
    /* Gives the driver its session or worker, and `saving` its variables. */
    int (*open)(struct runner *runner, struct error *err);
    /* Gives variables their values; skips the feeds of steps that already count. */
    int (*start)(struct runner *runner, const struct runner_origin *origin, struct error *err);
    /* Called before a step; returns false if the step is not to be run. */
    bool (*begins)(struct runner *runner);
    /* Returns whether all workers take their steps together. Then they may gather rows
     * (worker_exchange), and a worker saves before it leaves, so that what the next one saves is
     * newer. NULL: no. */
    bool (*goes_together)(const struct runner *runner);
    int (*gather_rows)(struct runner *runner, const struct collective_key *key,
                       const struct tensor *rows, bool *met, struct tensor *all, struct error *err);
    /* Called after a step, before it is measured and saved, to do what others wait for; `is_last`:
     * once more after the last step, if that is not settled, to make it so. NULL: nothing. */
    int (*stepped)(struct runner *runner, bool is_last, struct error *err);
    /* Returns by which step processes that go on together meet after this one. NULL: by it. */
    int64_t (*meets_at)(const struct runner *runner);
    /* Returns whether the variables of this step may be measured and saved. NULL: yes. */
    bool (*is_settled)(const struct runner *runner);
    /* Called after a step; returns whether to end, because of a signal or of another worker. */
    bool (*is_over)(struct runner *runner);
    /* Returns whether the processes save together: then each calls `gather` after a step, and
     * `gather_last` before it ends, with whether it is about to save. NULL: never. *again: nothing
     * was gathered, as a process left meanwhile; another one may have to save now.
     * */
    bool (*saves_together)(const struct runner *runner);
    int (*gather)(struct runner *runner, bool saves, bool *again, struct error *err);
    int (*gather_last)(struct runner *runner, bool saves, struct error *err);
    /* Called after what was gathered has been saved. */
    int (*saved)(struct runner *runner, struct error *err);
    /* Returns whether this process saves. NULL: yes. */
    bool (*saves)(const struct runner *runner);
    /* Writes all variables. */
    int (*write)(struct runner *runner, struct stream_writer *writer, struct error *err);
    /* Called after the last step, which ended with `code`. Returns the code that the run ends with.
     * NULL: `code`. */
    int (*leave)(struct runner *runner, int code, struct error *err);
    void (*close)(struct runner *runner);
};

/* Make a runner, to be closed with runner_close in any case. */
struct runner *runner_local_new(const struct runner_options *options);
struct runner *runner_worker_new(const struct runner_options *options); /* --task */
void runner_close(struct runner *runner);                               /* NULL: nothing */

/* Opens it; unless only a plan is wanted, first checks what is to be restored and saved. */
int runner_open(struct runner *runner, struct error *err);

/* Starts it, and opens the store that it saves to. */
int runner_start(struct runner *runner, struct error *err);

/* Called after a successful step: does what others wait for. `is_last`: once more after the last
 * step, if that is not settled, to settle it. */
int runner_stepped(struct runner *runner, bool is_last, struct error *err);
/* Returns whether the variables are those of this step for all: else only steps go on. */
bool runner_is_settled(const struct runner *runner);
/* Called then: saves to the store if a checkpoint is due. */
int runner_step(struct runner *runner, struct error *err);
/* Returns by which step the others know what is done after this one. */
int64_t runner_meets_at(const struct runner *runner);
/* Return whether this process saves; whether others take part in each save. */
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
