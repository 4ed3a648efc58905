/* SPDX-License-Identifier: Apache-2.0
 *
 * An entry that is run over all of its feed while another one trains, in the same process and with
 * the variables of that moment: its scores (bin/scores.h) go to checkpoints as ENTRY/NAME, and say
 * when to stop. It changes nothing that training depends on.
 *
 * From one thread. The order of calls: evaluation_check, evaluation_begin, evaluation_step after
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
    bool split; /* all workers of a job evaluate, each its part of the feed's records */
} evaluation_options;

struct training_mean { /* of a fetch, since the last evaluation */
    const char *name;
    double sum, value; /* value: what it was at that one; NaN: there was none */
    int64_t n;
};

struct evaluation {
    struct tool *tool;
    struct driver *training;
    struct saving *saving;
    struct runner *runner;   /* that trains; set before evaluation_begin */
    struct driver driver;    /* its own */
    struct scores scores;    /* each is called ENTRY/NAME */
    VEC(const char *) names; /* of those that are numbers */
    VEC(struct training_mean) means;
    struct stop_rule stop, reduce;
    const struct node *reduced; /* the variable; NULL: none is reduced */
    bool runs_feed;             /* --eval-feed is a command */
    struct interval every;
    double last_time, started;
    int64_t place, n_workers; /* of those that evaluate together: 0 of 1 where it is not split */
    int64_t last;             /* the step that was evaluated last, here or before it was resumed */
    int64_t scored;           /* that the scores are of; -1: none */
    int64_t epochs;
    void (*fetched)(void *, const char *, const struct tensor *, const struct request_view *);
    void *fetched_context;
    struct arena arena;
};

/* Before anything is run: the options, and that the graph has the entry; tells `saving` what will
 * be measured. ERR_USAGE, ERR_DATA. Nothing without --eval, as all that follow. */
int evaluation_check(struct evaluation *e, struct error *err);

/* Begins when the variables have their values, which may be those of a resumed step. */
int evaluation_begin(struct evaluation *e, struct error *err);

/* Of several workers those whose turn it is to save evaluate, and with `split` all. */
bool evaluation_is_here(const struct evaluation *e);

/* Called before the first step and after each: runs it if it is due; *stops: training is over. */
int evaluation_step(struct evaluation *e, bool *stops, struct error *err);

/* After the last step: runs it once more, unless that step was evaluated. `saves`: this process
 * saves alone, so that what was saved of the step gets its scores. */
int evaluation_end(struct evaluation *e, bool saves, struct error *err);

/* Instead of evaluation_end, where this worker was asked to end as it waited: others may evaluate.
 */
void evaluation_decline(struct evaluation *e);

/* Says what training has come to, and what predicts with it. */
void evaluation_report(struct evaluation *e);
void evaluation_close(struct evaluation *e);

#endif
