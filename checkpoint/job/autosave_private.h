/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of autosave share: one save (autosave_job.c), and whoever decides when there is
 * one. Private to checkpoint/job.
 */
#ifndef TF_CHECKPOINT_AUTOSAVE_PRIVATE_H
#define TF_CHECKPOINT_AUTOSAVE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "checkpoint/job/autosave.h"
#include "checkpoint/job/commit.h"
#include "checkpoint/job/save_life.h"
#include "checkpoint/variables/cut.h"
#include "checkpoint/variables/spare.h"

typedef VEC(struct manifest_scalar) measured_vec;

/* Scalars that a step has measured for a checkpoint that was begun without them. */
struct autosave_late {
    int64_t step; /* of the checkpoint; -1: there is none */
    measured_vec scalars;
};

struct autosave_job {
    const struct autosave_options *options;
    int64_t step; /* that its variables are of */
    struct cut cut;
    _Atomic enum save_life life;
    bool is_best;
    measured_vec scalars; /* of these variables */
    VEC(struct manifest_blob) blobs;
    struct autosave_late late; /* of an earlier one, to be written on the way */
    struct arena arena;
    bool in_background;
    const atomic_bool *hurry;   /* somebody waits for it; NULL: nobody will */
    struct store_writer writer; /* goes_on, out: it was saved */
    struct error err;
    struct commit commit;
};

struct measurement { /* a scalar of the step that was run last */
    char *name;
    double value;
    bool is_before;
};

struct autosave {
    struct autosave_options options;
    VEC(struct measurement) scalars;
    VEC(struct manifest_blob) blobs; /* names and data are owned */
    int64_t saved, last_begun;       /* steps; -1: none */
    double last_time;
    double best;                    /* NaN: none yet */
    struct autosave_job *job;       /* under way, with its thread; NULL: SAVE_IDLE */
    struct autosave_job *waiting;   /* the best, until nothing is under way; or, with `err`, until
                                     * another is due */
    struct autosave_job *candidate; /* of the last step, if the next one tells how good it is */
    int64_t unmeasured; /* the step of one that was begun before its scalars were known */
    struct autosave_late late;
    struct spare spare; /* so that the first step after a cut is as fast as others */
    pthread_t thread;
    atomic_bool hurry;      /* somebody waits for it */
    struct error succeeded; /* by another job, which has the store */
    struct autosave_counts counts;
};

/* Returns whether the value of the metric is better than ever. */
bool autosave_is_better(const struct autosave *autosave, double value);

/* Makes a job between two steps, when nobody writes. All cuts before it are collected. */
struct autosave_job *autosave_job_new(const struct autosave_options *options, int64_t step);
void autosave_job_free(struct autosave_job *job); /* NULL is harmless */

void autosave_job_add_scalar(struct autosave_job *job, const char *name, double value);
void autosave_job_add_blob(struct autosave_job *job, const struct manifest_blob *blob);

/* Returns what is to be done when that happens. NULL: none is under way. */
enum save_reaction autosave_job_react(struct autosave_job *job, enum save_event event);

/* So that another cut may be taken. */
int autosave_job_collect(struct autosave_job *job, struct error *err);

/* Writes it. Any thread. */
int autosave_job_run(struct autosave_job *job, struct error *err);

/* Writes what is late alone, and forgets it. */
int autosave_write_late(const struct autosave_options *options, struct autosave_late *late,
                        struct error *err);

void autosave_late_clear(struct autosave_late *late);

#endif
