/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores over all rows of a feed: what the steps of a driver give of the totals that a script has
 * marked (graph/marks.h) is put together, and the fetches are computed of it at the end. A number
 * that depends on no total is averaged over the steps, weighted by the rows that each was fed.
 */
#ifndef TF_BIN_SCORES_H
#define TF_BIN_SCORES_H

#include "exec/session/driver.h"

struct score {
    const char *name;
    struct edge edge;
    int mean;            /* the total that it is the mean of; -1: it is computed of totals */
    struct tensor value; /* set by scores_end; zeroed before */
};

enum total_kind { TOTAL_IS_SUM, TOTAL_IS_ROWS, TOTAL_IS_MEAN };

struct score_total {
    struct edge edge;
    enum total_kind kind;
    struct tensor value; /* so far; zeroed: no step was run */
    int64_t capacity;    /* of rows: elements that there is memory for */
};

struct scores {
    struct driver *driver;
    VEC(struct score) items;        /* as they were fetched */
    VEC(struct score_total) totals; /* what a step fetches, in this order */
    size_t next;                    /* of the step at hand */
    double rows;                    /* that the steps were fed */
    struct error failed;            /* of what a step gave */
};

/* Returns whether a fetch of the driver depends on a total. */
bool scores_are_fetched(const struct driver *driver);

/* After driver_ready, before its first step: from now on a step fetches totals, which nobody else
 * is told of. ERR_USAGE naming a fetch that is neither a score nor a number. */
int scores_begin(struct scores *scores, struct driver *driver, struct error *err);

/* Nothing counts of the steps so far but the shape of what they gave. */
void scores_forget_steps(struct scores *scores);

struct scores_gather {
    /* *all gets the rows of all processes, in one order, where this one brings `rows`. */
    int (*rows)(void *context, uint64_t number, const struct tensor *rows, struct tensor *all,
                struct error *err);
    void *context;
};

/* After the last step, in processes that each ran some of the steps, and at least one: each has
 * what all steps gave. *whole becomes false where it was false in one of them, which ran fewer. */
int scores_gather(struct scores *scores, const struct scores_gather *gather, bool *whole,
                  struct error *err);

/* After the last step: the values, of which those of an earlier time are released. ERR_DATA if no
 * step was run, or what steps gave does not go together. Another time may follow. */
int scores_end(struct scores *scores, struct error *err);

/* A scalar's value, as scores_end has set it; false: it is none. */
bool score_number(const struct score *score, double *value);

/* Those values as the fetches of a step, computed of that version of the variables; -1: no one
 * knows. */
int scores_write(struct scores *scores, struct stream_writer *writer, int64_t step, int64_t version,
                 struct error *err);

void scores_release(struct scores *scores);

#endif
