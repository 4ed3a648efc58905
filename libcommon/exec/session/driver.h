/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver: runs a request on a graph step by step, feeding it from records and writing what it
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
    /* Runs the steps instead of the session, as session_run does; NULL: the session itself. */
    int (*run)(void *context, const struct session_call *call, struct step *step,
               struct tensor *fetches, struct error *err);
    void *run_context;
    const char *option, *what; /* "--run", "train": what was asked for, for messages */
    uint64_t seed;
    struct stream_reader *feed_reader; /* NULL: all feeds are constant */
    struct stream_writer *writer;      /* of fetches; may be set before the first step only */
    int64_t steps_fed; /* the last step that takes feeds; below 0: as long as there are any. Feeds
                        * of a device are read ahead up to there; 0: none are */
    /* Waits until `fd` can be read, where feeds are read ahead, as their reader would wait for
     * input: what fails here driver_next_feeds fails with. NULL: for that alone. */
    int (*await_feeds)(void *context, int fd, struct error *err);
    void *await_context;
    int64_t write_every; /* steps from one that is written to the next; 0 is 1 */
    /* The version of the variables, where others change them, too: before and after a step, for the
     * records of fetches; -1: not known. With run_context; NULL: none is counted. */
    int64_t (*version)(void *context);
    /* Called after a step with each of its fetches; NULL: nobody wants to know. */
    void (*fetched)(void *context, const char *name, const struct tensor *value,
                    const struct request_view *view);
    void *fetched_context;
    struct trace *trace; /* with its writer, or NULL */
    struct stream_writer *trace_writer;

    /* The driver's own; released by driver_release. `request` is filled by request_run and
     * request_fetch after driver_init, `feeds` by feeds_add_constant; then comes driver_ready. */
    struct request request;
    struct feeds feeds;
    struct node_list needs; /* what a step must be given besides constants */
    struct record record;
    int64_t step;                        /* the last that was run: what the variables are of */
    int64_t passed;                      /* steps that count as run, and whose feeds were taken */
    bool is_passing;                     /* it takes such feeds */
    struct request_view *views;          /* by fetch, once somebody wanted to know */
    double flushed;                      /* when the fetches were, for readers; 0: not yet */
    struct stage *stage;                 /* NULL: no step was run yet */
    struct prefetched_batch *prefetched; /* of the step at hand */
    struct feed_ahead *ahead;            /* NULL: nothing is read ahead */
    struct step at_hand; /* its `cancelled` may be set from any thread, or a signal handler */
};

void driver_init(struct driver *driver, const struct graph *graph, const char *name);
void driver_release(struct driver *driver);

/* Finds what a step needs. ERR_USAGE when there is nothing to do. */
int driver_ready(struct driver *driver, struct error *err);

/* Runs the entry init, if the graph has one. */
int driver_initialize(struct driver *driver, struct error *err);

/* Runs an entry of its own, beside the request, as step `number`, without feeds. *fetches gets what
 * it fetches, `n_max` tensors at most, which the caller releases. ERR_DATA: there is no such entry,
 * or it fetches more. */
int driver_run_entry(struct driver *driver, const char *entry, int64_t number,
                     struct tensor *fetches, int n_max, struct error *err);

/* Takes the feeds of so many steps and does not run them: from the beginning they count as run, as
 * the variables are those of step n. Feeds that end before leave `step` at those that there are. */
int driver_pass_over(struct driver *driver, int64_t n, struct error *err);

/* Gathers the feeds of the next step; *more is false when they have ended. ERR_NOINPUT naming what
 * is not fed and what the request needs. Once a device with memory of its own has asked for a feed
 * a thread reads those of the step after that, too, and the reader is no one else's. */
int driver_next_feeds(struct driver *driver, bool *more, struct error *err);

/* Runs a step on them and writes what is fetched. The error names graph and step. */
int driver_run_step(struct driver *driver, struct error *err);

/* Writes the plan of the step at hand instead of running it. */
int driver_write_plan(struct driver *driver, struct error *err);

#endif
