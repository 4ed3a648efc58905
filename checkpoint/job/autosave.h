/* SPDX-License-Identifier: Apache-2.0
 *
 * Saving while steps run: every so many steps or seconds, whenever a metric reaches a new best, and
 * at the end. A background save snapshots the variables between two steps, which takes no time, and
 * its own thread copies and writes them (exec/state/variable.h).
 *
 * A checkpoint holds the scalars that were computed from its variables. A step computes its loss
 * from the variables before the step's update. So the best checkpoint is known one step late, and
 * its variables are kept until then; a checkpoint that is due is written at once, and gets its
 * scalars later. The checkpoint of the last step has no such scalars.
 *
 * The store is open only while something is written to it, so that tf-ckpt can work on it during
 * the run. A background save that fails is reported, and tried again when the next is due. One save
 * is under way at a time: a save that becomes due meanwhile is left out and counted, except the
 * best, which waits until it can be written or a better one replaces it.
 * One thread calls these functions, between steps.
 */
#ifndef TF_CHECKPOINT_AUTOSAVE_H
#define TF_CHECKPOINT_AUTOSAVE_H

#include "base/time.h"
#include "checkpoint/store/save.h"
#include "exec/state/variable.h"

/* How often something is done between steps. */
struct interval {
    int64_t steps;  /* 0: not by steps */
    double seconds; /* 0: not by time */
};

/* "100" is steps, "30s" is time. ERR_USAGE. */
int interval_parse(const char *text, struct interval *interval, struct error *err);

/* Returns whether it is due after `step`, if it was last done after step `last`, at the monotonic
 * time `then`. */
static inline bool interval_is_over(const struct interval *every, int64_t step, int64_t last,
                                    double then)
{
    return (every->steps > 0 && step / every->steps > last / every->steps) ||
           (every->seconds > 0 && time_now() - then >= every->seconds);
}

struct autosave_options {
    const char *path; /* of the store, which is created if missing */
    int64_t step;     /* the restored step, if restored from the store; else 0 */
    struct store_writer writer;
    struct interval every;
    const char *best; /* the metric; NULL: none */
    bool best_is_low;
    int64_t keep;            /* so many checkpoints of the run, the newest; 0: all */
    double bytes_per_second; /* in the background; 0: as fast as it goes */
    double copy_wait; /* seconds that a step waits for the copies of an earlier one's; 0: 60 */
    const char *producer, *owner; /* "tf-exec", with its arguments, and without */
    struct variable_store *variables;
    const struct graph *graph; /* all its variables must have values; NULL: saves those that have */
    void (*say)(void *context, const char *line); /* told of failures in the background */
    void *context;
};

struct autosave;

/* The strings must outlive it. ERR_DENIED, ERR_IO: the store cannot be created; ERR_DATA: it is
 * damaged; ERR_CONFIG: it belongs to another run. */
int autosave_open(const struct autosave_options *options, struct autosave **autosave,
                  struct error *err);

/* Called before the first step, after blobs are set: snapshots the current variables as candidate.
 */
void autosave_begin(struct autosave *autosave);

/* The following accept NULL: nothing is saved. Sets a scalar of the last step, or a blob of the
 * checkpoint; each stays until it is set again. `is_before`: the scalar was computed from the
 * variables before the step's update, and so belongs to the previous step's checkpoint. */
void autosave_set_scalar(struct autosave *autosave, const char *name, double value, bool is_before);
/* Drops the scalar: checkpoints of the following steps have none of that name. */
void autosave_drop_scalar(struct autosave *autosave, const char *name);
void autosave_set_blob(struct autosave *autosave, const char *name, const void *data, size_t n);

/* After a step: returns whether autosave_step will start a save. */
bool autosave_is_due(struct autosave *autosave, int64_t step);
/* After each step: starts a save if one is due and none is under way. A step that is not settled is
 * not saved, but may have measured the one before. */
void autosave_step(struct autosave *autosave, int64_t step, bool is_settled);
/* As of saving_collect. */
bool autosave_collect(struct autosave *autosave, int64_t step);
/* ERR_DENIED when a save has found that another job has taken the store over, so that this job
 * should end. */
int autosave_check(const struct autosave *autosave, struct error *err);

/* Waits for the save under way; then saves `step`, unless it was the last one saved. */
int autosave_finish(struct autosave *autosave, int64_t step, struct error *err);

/* Also waits for the save under way. NULL is harmless. */
void autosave_close(struct autosave *autosave);

/* Returns whether a save is under way. */
bool autosave_is_saving(const struct autosave *autosave);

struct autosave_counts {
    int64_t begun;    /* background saves */
    int64_t left_out; /* saves that became due while one was under way */
    int64_t failed;   /* background saves */
};
void autosave_count(const struct autosave *autosave, struct autosave_counts *counts);

#endif
