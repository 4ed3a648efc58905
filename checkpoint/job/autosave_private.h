/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of autosave: one save (autosave_job.c), and the decision when to save.
 * Private to checkpoint/job.
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

/* Scalars that a step measured for a checkpoint whose save began before they were known. */
struct autosave_late {
    int64_t step; /* of the checkpoint; -1: there are no such scalars */
    measured_vec scalars;
};

struct autosave_job {
    const struct autosave_options *options;
    int64_t step; /* the step after which the variables were marked */
    struct cut cut;
    _Atomic enum save_life life;
    bool is_best;
    measured_vec scalars; /* computed from these variables */
    VEC(struct manifest_blob) blobs;
    struct autosave_late late; /* scalars of an earlier checkpoint, written along with this save */
    struct arena arena;
    bool in_background;
    const atomic_bool *hurry;   /* true: somebody waits for the save; NULL: nobody ever does */
    struct store_writer writer; /* `goes_on` is set once it was saved */
    struct error err;
    struct commit commit;
};

struct measurement { /* a scalar of the last step */
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
    struct autosave_job *waiting;   /* the best, until no save is under way; if it failed (`err`),
                                       until another is due */
    struct autosave_job *candidate; /* of the last step; the next measures it */
    int64_t unmeasured; /* step of a save that began before its scalars were known; -1: none */
    struct autosave_late late;
    struct spare spare; /* makes the first step after a snapshot as fast as others */
    pthread_t thread;
    atomic_bool hurry;      /* true: somebody waits for the save */
    struct error succeeded; /* set when another job has taken the store over */
    struct autosave_counts counts;
};

/* Returns whether the value of the metric is better than ever. */
bool autosave_is_better(const struct autosave *autosave, double value);

/* Makes a job between two steps, when nobody writes. All earlier snapshots must be collected. */
struct autosave_job *autosave_job_new(const struct autosave_options *options, int64_t step);
void autosave_job_free(struct autosave_job *job); /* NULL is harmless */

void autosave_job_add_scalar(struct autosave_job *job, const char *name, double value);
void autosave_job_add_blob(struct autosave_job *job, const struct manifest_blob *blob);

/* Returns the reaction to an event. `job` NULL: no save is under way. */
enum save_reaction autosave_job_react(struct autosave_job *job, enum save_event event);

/* Copies the values of the job's snapshot, so that another snapshot may be taken. */
int autosave_job_collect(struct autosave_job *job, struct error *err);

/* Writes the checkpoint. Any thread. */
int autosave_job_run(struct autosave_job *job, struct error *err);

/* Writes the late scalars without a save, and clears them. */
int autosave_write_late(const struct autosave_options *options, struct autosave_late *late,
                        struct error *err);

void autosave_late_clear(struct autosave_late *late);

#endif
