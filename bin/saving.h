/* SPDX-License-Identifier: Apache-2.0
 *
 * How a program keeps the variables of its graph: in a file at the end, or in a store of
 * checkpoints while steps go on. The rows of its options are in bin/save_rows.def.
 */
#ifndef TF_BIN_SAVING_H
#define TF_BIN_SAVING_H

#include "checkpoint/job/autosave.h"
#include "checkpoint/store/manifest.h"
#include "cli/tool.h"
#include "exec/session/driver.h"

extern struct save_options {
    const char *path, *every, *best, *restore, *run_name;
    int64_t rate; /* bytes a second; 0: as fast as it goes */
    int64_t keep; /* checkpoints; 0: all */
    bool resume, partial;
    struct option_list names; /* NEW=OLD */
} save_options;

struct saving {
    struct tool *tool;
    struct driver *driver;
    struct variable_store *variables; /* set before anything is restored or saved */
    struct device *device;            /* of variables that are not there yet */
    bool has_all;                     /* no other task has variables */
    int64_t resumed;                  /* the step; 0: none */
    struct store_writer writer;       /* that the process saves as */
    bool reads_store;                 /* what --restore names was one when its reader was opened */
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

/* Returns the producer that checkpoints name; lives as long as `saving`. */
const char *saving_producer(struct saving *saving);

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

/* Opens what --restore names, as one stream. */
int saving_open_reader(struct saving *saving, struct stream_reader **reader, struct error *err);
void saving_close_reader(struct saving *saving, struct stream_reader *reader);

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
