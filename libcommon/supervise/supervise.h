/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the tasks of a job as its parent: starts them, starts again what died, ends all in good
 * order. A file says what a task is, and what is done about its end (docs/supervise.md); the
 * supervisor knows nothing of graphs and checkpoints.
 *
 * Every task has a session of its own, so that a terminal's signals meet the supervisor only. All
 * that a task leaves behind is killed with it: the supervisor is the parent of orphans, and finds
 * them by a mark in their environment. Its guard (supervise/guard.h) does the same for the
 * supervisor.
 */
#ifndef TF_SUPERVISE_H
#define TF_SUPERVISE_H

#include "base/error.h"
#include "supervise/watch.h"

struct supervise_options {
    const char *path;                             /* of the tasks' file */
    const char *program;                          /* that is a guard with --guard */
    void (*say)(void *context, const char *text); /* to the user, without a newline */
    void (*tick)(void *context);                  /* now and then, ten times a second or more */
    /* How far the job is; NULL: something else is about to be written to the terminal. */
    void (*progress)(void *context, const struct watch_state *state);
    void *context;

    int (*watch)(const struct watch_options *options, struct error *err); /* ps/watch.h */
    /* The incarnation of a task that the watch saw last, by which news of it are told from those of
     * the next one. */
    uint64_t (*incarnation)(const char *job_folder, const char *task);
};

/* Runs the job. Its exit status is err->code, without a text when the job's own lines said why.
 * ERR_NOINPUT, ERR_DATA of the file; ERR_RETRY: another one has the job's folder; ERR_OS. Blocks
 * signals in the process, for good. */
int supervise(const struct supervise_options *options, struct error *err);

#endif
