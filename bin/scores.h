/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores over all rows of a feed: totals that a script has marked (graph/marks.h) are accumulated
 * over a driver's steps, and the fetches are computed from them at the end. A number that depends
 * on no total is averaged over the steps, weighted by the rows fed to each.
 */
#ifndef TF_BIN_SCORES_H
#define TF_BIN_SCORES_H

#include "exec/session/driver.h"

struct score {
    const char *name;
    struct edge edge;
    int mean;            /* index of the total that it averages; -1: computed from totals */
    struct tensor value; /* set by scores_end; zeroed before */
};

enum total_kind { TOTAL_IS_SUM, TOTAL_IS_ROWS, TOTAL_IS_MEAN };

struct score_total {
    struct edge edge;
    enum total_kind kind;
    struct tensor value; /* so far; zeroed: no step was run */
    int64_t capacity;    /* of TOTAL_IS_ROWS: elements that the memory holds */
};

struct scores {
    struct driver *driver;
    VEC(struct score) items;        /* in the order of the driver's fetches */
    VEC(struct score_total) totals; /* what a step fetches, in this order */
    size_t next;                    /* index of the total that the step gives next */
    double rows;                    /* fed to the steps so far */
    struct error failed;            /* the first failure to add a step's values */
};

/* Returns whether a fetch of the driver depends on a total. */
bool scores_are_fetched(const struct driver *driver);

/* Called after driver_ready, before the first step: from now on a step fetches totals, which only
 * the scores receive. ERR_USAGE names a fetch that is neither a score nor a number. */
int scores_begin(struct scores *scores, struct driver *driver, struct error *err);

/* Discards what the steps so far gave, except its shapes. */
void scores_forget_steps(struct scores *scores);

struct scores_gather {
    /* Contributes `rows`; *all gets those of all processes, in the same order in each. */
    int (*rows)(void *context, uint64_t number, const struct tensor *rows, struct tensor *all,
                struct error *err);
    void *context;
};

/* Called after the last step, in processes that each ran some of the steps, at least one: gives
 * each process the totals of all. *whole becomes false if it was in one, which ran too few. */
int scores_gather(struct scores *scores, const struct scores_gather *gather, bool *whole,
                  struct error *err);

/* Called after the last step: computes the values, and releases those of the last time. ERR_DATA if
 * no step was run, or steps gave values of different shapes. The next steps start anew. */
int scores_end(struct scores *scores, struct error *err);

/* Gets the value of a scalar as scores_end set it; false: it is no scalar, or not set. */
bool score_number(const struct score *score, double *value);

/* Writes those values as the fetches of a step, computed from that version of the variables; -1:
 * unknown. */
int scores_write(struct scores *scores, struct stream_writer *writer, int64_t step, int64_t version,
                 struct error *err);

void scores_release(struct scores *scores);

#endif
