/* SPDX-License-Identifier: Apache-2.0
 *
 * How a program keeps the variables of its graph in a store of checkpoints while steps go on, and
 * goes on from what a store has.
 */
#ifndef TF_CHECKPOINT_SAVING_H
#define TF_CHECKPOINT_SAVING_H

#include "checkpoint/job/autosave.h"
#include "checkpoint/store/manifest.h"
#include "checkpoint/variables/restore.h"
#include "exec/session/driver.h"

struct save_options {
    const char *path, *every, *best, *restore, *run_name; /* NULL: not given */
    int64_t rate; /* bytes a second; 0: as fast as it goes */
    int64_t keep; /* checkpoints; 0: all */
    bool resume, partial;
    struct restore_names names;
};

struct saving {
    const struct save_options *options;
    const char *owner, *producer; /* "tf-exec", without its arguments and with them */
    void (*say)(void *context, const char *line);
    void *context;
    struct driver *driver;
    struct variable_store *variables; /* set before anything is restored or saved */
    struct device *device;            /* of variables that are not there yet */
    bool to_store;                    /* --save names one; else a file, which is the caller's */
    bool has_all;                     /* no other task has variables */
    int64_t resumed;                  /* the step; 0: none */
    struct store_writer writer;       /* that the process saves as */
    const char *claims;               /* of the job, for store_take_over; NULL: there is no job */
    bool takes_over;                  /* saving, from another process of the job */
    const char *metric;               /* of --save-best; NULL: none */
    bool metric_is_low;
    const char *const *measured; /* what --save-best may name besides fetches; see below */
    size_t n_measured;
    struct error no_scalar;    /* that it turned out to be none; code 0: it is one */
    struct autosave *autosave; /* of a store, since there was something to save there; or NULL */
    struct arena arena;
};

/* Checks what can be known before anything is run; has_all: all variables are in this process. */
int saving_check(struct saving *saving, bool has_all, struct error *err);

/* Checks what can be known of --save-best before anything is run: that it is fetched, and a scalar.
 * */
int saving_check_metric(struct saving *saving, struct error *err);

/* ---- restoring ---- */

/* *done tells whether the variables have their values now. Where they are those of --resume,
 * saving->resumed is their step. */
int saving_restore(struct saving *saving, bool *done, struct error *err);

/* Called by a process that may save later in the place of another of its job, when that has
 * restored. */
int saving_await_turn(struct saving *saving, struct error *err);

/* Restores for --restore-partial, after the graph's init, over what that has set. */
int saving_restore_partial(struct saving *saving, struct error *err);

/* The newest step in the store that --resume would go on from; -1: none. */
int saving_newest(struct saving *saving, int64_t *step, struct error *err);

/* Opens what --restore names, if that is a store, as one stream; *reader NULL: it is none. */
int saving_open_reader(struct saving *saving, struct stream_reader **reader, struct error *err);

/* The feeds of the steps that were run already are passed over. */
int saving_pass_over(struct saving *saving, int64_t step, struct error *err);

/* ---- saving ---- */

/* Opens the store after the variables have values; nothing if it is open, or there is none. */
int saving_open(struct saving *saving, struct error *err);
/* Says, after a step, whether saving_step will save. */
int saving_is_due(struct saving *saving, bool *due, struct error *err);
/* Saves to the store in the background, after each step, when it is time to. */
int saving_step(struct saving *saving, struct error *err);
/* Ends: waits for what is under way, and saves `step` unless it was saved; says what of the saves
 * in the background was left out, or failed. */
int saving_finish(struct saving *saving, int64_t step, struct error *err);
void saving_close(struct saving *saving);

/* Appends to `text` what the checkpoint that was resumed has by that name. */
int saving_read_blob(struct saving *saving, const char *name, struct str *text, struct error *err);

/* The best checkpoint of the store by --save-best, in memory of `saving`. */
struct saved_best {
    int64_t step;      /* -1: there is none */
    const char *store; /* its name */
    struct manifest_scalar *scalars;
    size_t n;
};
void saving_find_best(struct saving *saving, struct saved_best *best);

/* ---- saving_fetches.c, for saving_open and saving_step ---- */

/* Makes checkpoints have, from now on, the scalars that steps fetch. */
void saving_watch_fetches(struct saving *saving, const struct autosave_options *options);
/* Records where the data of the step came from. */
void saving_take_place(struct saving *saving);

#endif
