/* SPDX-License-Identifier: Apache-2.0
 *
 * How a program saves the variables of its graph to a store of checkpoints while steps run, and
 * resumes from a store.
 */
#ifndef TF_CHECKPOINT_SAVING_H
#define TF_CHECKPOINT_SAVING_H

#include "checkpoint/job/autosave.h"
#include "checkpoint/store/manifest.h"
#include "checkpoint/variables/restore.h"
#include "exec/session/driver.h"

struct save_options {
    const char *path, *every, *best, *restore, *run_name; /* NULL: not given */
    int64_t rate;                                         /* bytes a second; 0: no limit */
    int64_t keep;                                         /* checkpoints; 0: all */
    bool resume, partial;
    struct restore_names names;
};

struct saving {
    const struct save_options *options;
    const char *owner, *producer; /* "tf-exec", and the same with its arguments */
    void (*say)(void *context, const char *line);
    void *context;
    struct driver *driver;
    struct variable_store *variables; /* must be set before anything is restored or saved */
    struct device *device;            /* where missing variables are created */
    bool to_store;              /* --save names a store; else a file, which the caller writes */
    bool has_all;               /* no other task has variables */
    int64_t resumed;            /* the step; 0: none */
    struct store_writer writer; /* identity under which the process saves */
    const char *claims; /* the job's file of claims, for store_take_over; NULL: there is no job */
    bool takes_over;    /* it takes over saving from another process of the job */
    const char *metric; /* of --save-best; NULL: none */
    bool metric_is_low;
    const char *const *measured; /* what --save-best may name besides fetches; see below */
    size_t n_measured;
    struct error no_scalar;    /* set if the metric is not a scalar; code 0: it is one */
    struct autosave *autosave; /* opened with the store; NULL: no store, or not open yet */
    struct arena arena;
};

/* Checks the options as far as possible before a run; has_all: all variables are in this
 * process. */
int saving_check(struct saving *saving, bool has_all, struct error *err);

/* Checks --save-best as far as possible before a run: that it is fetched, and is a scalar. */
int saving_check_metric(struct saving *saving, struct error *err);

/* ---- restoring ---- */

/* *done says whether the variables now have values. If they come from --resume, saving->resumed is
 * their step. */
int saving_restore(struct saving *saving, bool *done, struct error *err);

/* Called, after it has restored, by a process that may later save in the place of another process
 * of its job. */
int saving_await_turn(struct saving *saving, struct error *err);

/* Restores for --restore-partial; called after the graph's init, whose values it overwrites. */
int saving_restore_partial(struct saving *saving, struct error *err);

/* Finds the step that --resume would resume from; -1: none. */
int saving_newest(struct saving *saving, int64_t *step, struct error *err);

/* Opens the store, or the file of another program, that --restore names as one stream; *reader
 * NULL: it is neither. */
int saving_open_reader(struct saving *saving, struct stream_reader **reader, struct error *err);

/* Skips the feeds of the steps that were already run. */
int saving_pass_over(struct saving *saving, int64_t step, struct error *err);

/* ---- saving ---- */

/* Opens the store once the variables have values; does nothing if it is open, or there is none. */
int saving_open(struct saving *saving, struct error *err);
/* Tells, after a step, whether saving_step will save. */
int saving_is_due(struct saving *saving, bool *due, struct error *err);
/* Called after each step: starts a background save to the store if one is due, unless the
 * variables are not settled, so that this step is not to be saved. */
int saving_step(struct saving *saving, bool is_settled, struct error *err);
/* Copies what earlier snapshots share with the variables, so that others may take one. Returns
 * false, which was told, if that takes too long. */
bool saving_collect(struct saving *saving);
/* Ends: waits for the save under way, and saves `step` unless it was saved; reports which
 * background saves were left out or failed. */
int saving_finish(struct saving *saving, int64_t step, struct error *err);
void saving_close(struct saving *saving);

/* Appends to `text` the blob of that name in the checkpoint that was resumed. */
int saving_read_blob(struct saving *saving, const char *name, struct str *text, struct error *err);

/* The best checkpoint of the store by --save-best; the memory is owned by `saving`. */
struct saved_best {
    int64_t step;      /* -1: there is none */
    const char *store; /* its name */
    struct manifest_scalar *scalars;
    size_t n;
};
void saving_find_best(struct saving *saving, struct saved_best *best);

#endif
