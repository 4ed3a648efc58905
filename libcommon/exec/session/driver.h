/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver: runs a request on a graph step by step, feeding it from records and writing its
 * fetches. This is tf-exec's work between its options and its exit code.
 */
#ifndef TF_EXEC_DRIVER_H
#define TF_EXEC_DRIVER_H

#include "exec/session/feeds.h"
#include "exec/session/session.h"
#include "exec/step/prefetched.h"
#include "exec/step/trace.h"

struct feed_ahead;

struct driver {
    /* Set by the caller, who owns what they point to. */
    const char *name; /* of the graph, for messages */
    const struct graph *graph;
    struct device *device;
    struct session *session;
    /* Runs steps instead of session_run, with the same contract; NULL: session_run does. */
    int (*run)(void *context, const struct plan_request *call, struct step *step,
               struct tensor *fetches, struct error *err);
    void *run_context;
    const char *option, *what;         /* "--run", "train": the request, for messages */
    struct stream_reader *feed_reader; /* NULL: all feeds are constant */
    struct stream_writer *writer;      /* of fetches; may be set before the first step only */
    int64_t steps_fed; /* the last step that takes feeds; below 0: as long as there are any. Feeds
                        * that a device needs are read ahead up to there; 0: not at all */
    /* Waits until `fd` can be read, when feeds are read ahead, as their reader would wait for
     * input; driver_next_feeds fails with its error. NULL: plain waiting. */
    int (*await_feeds)(void *context, int fd, struct error *err);
    void *await_context;
    int64_t write_every; /* every how many steps fetches are written; 0 is 1 */
    /* The version of the variables, if others change them, too: called before and after a step, for
     * the records of fetches, with run_context; -1: unknown. NULL: there are no versions. */
    int64_t (*version)(void *context);
    /* Called after a step with each of its fetches; or NULL. */
    void (*fetched)(void *context, const char *name, const struct tensor *value,
                    const struct request_view *view);
    void *fetched_context;
    struct trace *trace; /* with its writer, or NULL */
    struct stream_writer *trace_writer;

    /* For the driver; released by driver_release. `request` is filled by request_run and
     * request_fetch after driver_init, `feeds` by feeds_add_constant; then comes driver_ready. */
    struct request request;
    struct feeds feeds;
    struct node_list needs;     /* sources that a step must feed besides constants */
    int64_t step;               /* the last that was run, which the variables are of */
    struct request_view *views; /* by fetch; NULL until they are needed */
    double flushed;             /* time of the last flush of fetches; 0: not yet */
    struct stage *stage;        /* NULL: no step was run yet */
    struct feed_ahead *ahead;   /* NULL: nothing is read ahead */
    struct step at_hand; /* the caller sets its seed; `cancelled` may be set from any thread, or a
                          * signal handler */
};

void driver_init(struct driver *driver, const struct graph *graph, const char *name);
void driver_release(struct driver *driver);

/* Finds the sources that a step needs. ERR_USAGE if there is nothing to do. */
int driver_ready(struct driver *driver, struct error *err);

/* Runs the entry init, if the graph has one. */
int driver_initialize(struct driver *driver, struct error *err);

/* Runs another entry than the request, as step `number`, without feeds. *fetches gets its fetches,
 * n_max tensors at most, which the caller releases. ERR_DATA: there is no such entry, or it fetches
 * more. */
int driver_run_entry(struct driver *driver, const char *entry, int64_t number,
                     struct tensor *fetches, int n_max, struct error *err);

/* Takes the feeds of n steps without running them: they count as run, since the variables are those
 * of step n. If the feeds end before, `step` is the last step that had any. */
int driver_pass_over(struct driver *driver, int64_t n, struct error *err);

/* Gathers the next step's feeds; *more is false at their end. ERR_NOINPUT names a source that is
 * not fed, and those that the request needs. Once a device with memory of its own has asked for a
 * feed, a thread also reads the feeds of the step after that, and owns the reader. */
int driver_next_feeds(struct driver *driver, bool *more, struct error *err);

/* Runs a step on these feeds and writes its fetches. The error names graph and step. */
int driver_run_step(struct driver *driver, struct error *err);

/* Writes the plan of the current step instead of running it. */
int driver_write_plan(struct driver *driver, struct error *err);

#endif
