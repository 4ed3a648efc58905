/* SPDX-License-Identifier: Apache-2.0
 *
 * Saving while steps go on: every so many steps or seconds, when a metric has become better than
 * ever, and at the end. A save in the background marks the variables between two steps, which
 * takes no time, and a thread of its own copies and writes them (exec/state/variable.h).
 *
 * A checkpoint has the scalars that were computed of its variables. A loss is one of the variables
 * before the step that changes them: so the best are known a step later, and the variables are kept
 * until then; a checkpoint that is due is written at once, and gets its scalars afterwards. The
 * checkpoint of the last step has none of these.
 *
 * The store is open only while something is written to it, so that tf-ckpt can work on it during
 * the run. A save that fails in the background is told and tried again when the next is due. One
 * is under way at a time: what is due meanwhile is left out, and counted, but for the best, which
 * waits until it can be written, or is none any more.
 * One thread calls these functions, between steps.
 */
#ifndef TF_CHECKPOINT_AUTOSAVE_H
#define TF_CHECKPOINT_AUTOSAVE_H

#include "base/time.h"
#include "checkpoint/store/save.h"
#include "exec/state/variable.h"

/* The interval at which something is done beside steps. */
struct interval {
    int64_t steps;  /* 0: not by steps */
    double seconds; /* 0: not by time */
};

/* "100": steps, "30s": time. ERR_USAGE. */
int interval_parse(const char *text, struct interval *interval, struct error *err);

/* Returns whether it is time again after `step`, when it was done last after the step `last`, at
 * the monotonic time `then`. */
static inline bool interval_is_over(const struct interval *every, int64_t step, int64_t last,
                                    double then)
{
    return (every->steps > 0 && step / every->steps > last / every->steps) ||
           (every->seconds > 0 && time_now() - then >= every->seconds);
}

struct autosave_options {
    const char *path; /* of the store, made if it is missing */
    int64_t step;     /* the last that was run, if it was restored from the store; or 0 */
    struct store_writer writer;
    struct interval every;
    const char *best; /* the metric; NULL: none */
    bool best_is_low;
    int64_t keep;                 /* so many checkpoints of the run, the newest; 0: all */
    double bytes_per_second;      /* in the background; 0: as fast as it goes */
    const char *producer, *owner; /* "tf-exec", with its arguments, and without */
    struct variable_store *variables;
    const struct graph *graph; /* whose variables must all have a value; NULL: whatever is there */
    void (*say)(void *context, const char *line); /* what went wrong in the background */
    void *context;
};

struct autosave;

/* The strings must live as long. ERR_DENIED, ERR_IO when the store cannot be made; ERR_DATA when it
 * is damaged; ERR_CONFIG when it is another run's. */
int autosave_open(const struct autosave_options *options, struct autosave **autosave,
                  struct error *err);

/* Before the first step, once blobs were set: what it measures are the variables as they are now.
 */
void autosave_begin(struct autosave *autosave);

/* The following take NULL: nothing is saved. The value of a scalar in the step that was run last,
 * and of what else belongs to a checkpoint: both stay until they are given anew. `is_before`: it
 * was computed of the variables as they were before the step, and so belongs to the checkpoint of
 * the step before. */
void autosave_set_scalar(struct autosave *autosave, const char *name, double value, bool is_before);
/* Forgets the scalar: the variables that the next step leaves have none of that name. */
void autosave_drop_scalar(struct autosave *autosave, const char *name);
void autosave_set_blob(struct autosave *autosave, const char *name, const void *data, size_t n);

/* After a step: whether autosave_step will start a save. */
bool autosave_is_due(struct autosave *autosave, int64_t step);
/* After each step: starts a save if one is due and none is under way. */
void autosave_step(struct autosave *autosave, int64_t step);
/* ERR_DENIED when a save has found that another job has taken the store over, so that there is
 * nothing to go on for. */
int autosave_check(const struct autosave *autosave, struct error *err);

/* Waits for what is under way; then saves `step`, unless that is what was saved last. */
int autosave_finish(struct autosave *autosave, int64_t step, struct error *err);

/* Waits, too; NULL is harmless. */
void autosave_close(struct autosave *autosave);

/* Returns whether a save is under way. */
bool autosave_is_saving(const struct autosave *autosave);

struct autosave_counts {
    int64_t begun;    /* saves in the background */
    int64_t left_out; /* steps that were due and passed while one was under way */
    int64_t failed;   /* in the background */
};
void autosave_count(const struct autosave *autosave, struct autosave_counts *counts);

#endif
