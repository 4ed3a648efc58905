/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs the steps of tf-exec: a session of this process, or a worker, which is a task of a
 * cluster and drives the others. The driver is the same for both; a runner gives it something to
 * run on, the variables their values, and knows whose turn it is to end and to save.
 *
 * From one thread. The order of calls: runner_open, runner_start, then for each step begins, the
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
    struct driver *driver;       /* with its graph and name */
    struct saving *saving;
    struct device_options device;
    uint64_t seed;
    bool check;       /* stop at the first value that is not finite */
    unsigned without; /* plan_options */
    bool plan_only;   /* nothing is run */
};

/* The values that the variables begin with. */
struct runner_origin {
    struct stream_reader *reader; /* of --restore; NULL: none */
    bool is_restored;             /* they have their values, as of saving->resumed */
};

struct runner {
    const struct runner_kind *kind;
    struct runner_options options;
    int64_t first;    /* the step before the first that this process runs; INT64_MAX: none */
    bool ends;        /* set by the caller: training is to end, as it was asked to */
    bool was_stopped; /* by another worker, which was asked to end */
};

/* The calls of a kind. Those that fail return a code as everywhere. */
struct runner_kind {
    /* Returns whether every variable is in this process, or in every one of its job; before open.
     * NULL: yes.
     */
    bool (*has_all_variables)(const struct runner *runner);
    /* Gives the driver what it runs on, and the saving its variables. */
    int (*open)(struct runner *runner, struct error *err);
    /* The variables get their values; the feeds of steps that count already are passed over. */
    int (*start)(struct runner *runner, const struct runner_origin *origin, struct error *err);
    /* Before a step: false when it is not to be run. */
    bool (*begins)(struct runner *runner);
    /* Returns whether it goes on together with others. Then it may gather what each of them brings
     * (worker_gather_rows), and saves before it leaves, as what the next one saves must be the
     * newer. NULL: no. */
    bool (*goes_together)(const struct runner *runner);
    int (*gather_rows)(struct runner *runner, const struct collective_key *key,
                       const struct tensor *rows, bool *met, struct tensor *all, struct error *err);
    /* After a step, before it is saved: what is to be done for others. NULL: nothing. */
    int (*stepped)(struct runner *runner, struct error *err);
    /* After a step: whether it was asked to end, by a signal or by another worker. */
    bool (*is_over)(struct runner *runner);
    /* Returns whether processes that go on together save together: then each calls `gather` after a
     * step, and `gather_last` before it ends, and says whether it is about to save. NULL: never.
     * `again`: one has left meanwhile, so that it may be another's to save: nothing was gathered.
     * */
    bool (*saves_together)(const struct runner *runner);
    int (*gather)(struct runner *runner, bool saves, bool *again, struct error *err);
    int (*gather_last)(struct runner *runner, bool saves, struct error *err);
    /* After what was gathered has been saved. */
    int (*saved)(struct runner *runner, struct error *err);
    /* Returns whether it is this process that saves. NULL: yes. */
    bool (*saves)(const struct runner *runner);
    /* Writes all variables. */
    int (*write)(struct runner *runner, struct stream_writer *writer, struct error *err);
    /* After the last step, which ended with `code`. Returns the code that the run ends with. NULL:
     * that. */
    int (*leave)(struct runner *runner, int code, struct error *err);
    void (*close)(struct runner *runner);
};

/* runner_close in any case. */
struct runner *runner_local_new(const struct runner_options *options);
struct runner *runner_worker_new(const struct runner_options *options); /* --task */
void runner_close(struct runner *runner);                               /* NULL: nothing */

/* Opens it; for more than a plan, after a look at what is to be restored and saved. */
int runner_open(struct runner *runner, struct error *err);

/* Starts it, and opens what it saves to. */
int runner_start(struct runner *runner, struct error *err);

/* Saves to the store, after a step that ended well, when it is time to. */
int runner_step(struct runner *runner, struct error *err);

/* Returns whether it is this process that saves; whether others take part in each save. */
bool runner_saves(const struct runner *runner);
bool runner_saves_together(const struct runner *runner);

/* Returns whether the steps have ended well though there was more to run. */
bool runner_was_stopped(struct runner *runner);

/* Returns whether it has run a step. */
bool runner_has_run(const struct runner *runner);

/* After the last step. `code` is 0, or that it was asked to end while it waited for feeds, which
 * is no failure. Leaves, and saves what there is to save; `has_values`: since runner_start. */
int runner_end(struct runner *runner, bool has_values, int code, struct error *err);

#endif
