/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the tasks of a job as their parent: starts them, restarts those that died, and ends all in
 * order. A file describes each task and what to do when it ends (docs/supervise.md); the supervisor
 * knows nothing of graphs and checkpoints.
 *
 * Every task has a session of its own, so that a terminal's signals reach only the supervisor. All
 * processes that a task leaves behind are killed with it: the supervisor adopts orphans, and finds
 * them by a mark in their environment. Its reaper (supervise/reaper.h) does the same for the
 * supervisor.
 */
#ifndef TF_SUPERVISE_H
#define TF_SUPERVISE_H

#include "base/error.h"
#include "supervise/watch.h"

#define SUPERVISE_RESTARTS_MAX 1000000

struct supervise_options {
    const char *path;    /* of the tasks' file */
    const char *program; /* a program that becomes a reaper with --reaper */
    void (*say)(void *context, const char *text); /* to the user, without a newline */
    void (*tick)(void *context);                  /* called at least ten times a second */
    /* Shows the job's progress; NULL: something else is about to be written to the terminal. */
    void (*progress)(void *context, const struct watch_state *state);
    void *context;

    int (*watch)(const struct watch_options *options, struct error *err); /* ps/watch.h */
    /* Returns the incarnation of a task that the watch saw last, which distinguishes reports about
     * it from those about the next one. */
    uint64_t (*incarnation)(const char *job_folder, const char *task);
};

/* Runs the job. err->code is its exit status, without a text if the job's own lines have said why.
 * ERR_NOINPUT, ERR_DATA for the file; ERR_RETRY: the job's folder is in use; ERR_OS. Leaves signals
 * blocked in the process. */
int supervise(const struct supervise_options *options, struct error *err);

#endif
