/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs an entry over all of its feed while another entry trains, in the same process and with the
 * current variables. Its scores (bin/scores.h) go to checkpoints as ENTRY/NAME and decide when to
 * stop. An evaluation changes nothing that training depends on.
 *
 * For one thread. The order of calls: evaluation_check, evaluation_begin, evaluation_step after
 * each step and before it is saved; evaluation_end, and evaluation_report when all is saved.
 */
#ifndef TF_BIN_EVALUATION_H
#define TF_BIN_EVALUATION_H

#include "bin/runner.h"
#include "bin/scores.h"
#include "bin/stop_rule.h"
#include "checkpoint/job/saving.h"
#include "cli/tool.h"

extern struct evaluation_options {
    const char *entry, *feed, *every, *stop, *reduce;
    bool split; /* all workers of a job evaluate, each on its share of the feed's records */
} evaluation_options;

struct training_mean { /* of a fetch, since the last evaluation */
    const char *name;
    double sum, value; /* value: the mean at that evaluation; NaN: there was none */
    int64_t n;
};

struct evaluation {
    struct tool *tool;
    struct driver *training;
    struct saving *saving;
    struct runner *runner;   /* of the training; set before evaluation_begin */
    struct driver driver;    /* of the evaluation */
    struct scores scores;    /* each is called ENTRY/NAME */
    VEC(const char *) names; /* of the scores that are numbers */
    VEC(struct training_mean) means;
    struct stop_rule stop, reduce;
    const struct node *reduced; /* variable that --reduce lowers; NULL: none */
    bool runs_feed;             /* --eval-feed is a command */
    struct interval every;
    double last_time, started;
    int64_t place, n_workers; /* among the workers that evaluate together; not split: 0 of 1 */
    int64_t last;             /* the step last evaluated, here or before the run was resumed */
    int64_t scored;           /* the step that the scores belong to; -1: none */
    int64_t epochs;
    void (*fetched)(void *, const char *, const struct tensor *, const struct request_view *);
    void *fetched_context;
    struct arena arena;
};

/* Checks the options, and that the graph has the entry, before anything is run; tells `saving` what
 * will be measured. ERR_USAGE, ERR_DATA. Without --eval this and all calls below do nothing. */
int evaluation_check(struct evaluation *e, struct error *err);

/* Called once the variables have their values, which may be those of a resumed step. */
int evaluation_begin(struct evaluation *e, struct error *err);

/* Returns whether this process evaluates: the worker whose turn it is to save or, if split, all. */
bool evaluation_is_here(const struct evaluation *e);

/* Called before the first step and after each: evaluates if due and the variables are settled;
 * *stops: training is to end. */
int evaluation_step(struct evaluation *e, bool is_settled, bool *stops, struct error *err);

/* Called after the last step: evaluates once more, unless that step was evaluated. `saves`: this
 * process saves alone, and now saves the step with its scores. */
int evaluation_end(struct evaluation *e, bool saves, struct error *err);

/* Called instead of evaluation_end if this worker was asked to end while it waited: joins the
 * others, which may be about to evaluate, only to tell them so. */
void evaluation_decline(struct evaluation *e);

/* Prints the results of training, and a command line that predicts with them. */
void evaluation_report(struct evaluation *e);
void evaluation_close(struct evaluation *e);

#endif
