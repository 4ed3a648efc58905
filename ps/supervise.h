/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the tasks of a job as its parent: starts them, starts again what died, ends all in good
 * order. What a task is, and what is done about its end, stands in a file (docs/supervise.md); of
 * graphs and checkpoints the supervisor knows nothing.
 *
 * Every task has a session of its own, so that a terminal's signals meet the supervisor only. All
 * that a task leaves behind is killed with it: the supervisor is the parent of orphans, and finds
 * them by a mark in their environment. Its guard (ps/guard.h) does the same for the supervisor.
 */
#ifndef TF_PS_SUPERVISE_H
#define TF_PS_SUPERVISE_H

#include "base/error.h"
#include "ps/watch.h"

struct supervise_options {
    const char *path,
        *program; /* of the tasks' file; of the program that is a guard with --guard */
    /* A line for the user, without a newline: news, and what is said even to who wants quiet. */
    void (*say)(void *context, const char *name, const char *text);
    void (*tell)(void *context, const char *text);
    void (*progress)(void *context, const struct watch_state *state);
    void (*progress_ends)(void *context); /* another program is about to write to the terminal */
    void *context;
};

/* Runs the job. Its exit status is err->code, without a text when the job's own lines said why.
 * ERR_NOINPUT, ERR_DATA of the file, ERR_OS. Blocks signals in the process, for good. */
int supervise(const struct supervise_options *options, struct error *err);

/* Asks the supervisor of a job's folder: "status" or "stop". The answer is the state, as JSON; a
 * stop returns when the job has ended. ERR_NOINPUT: no supervisor was ever there; ERR_UNAVAILABLE:
 * it has died. The caller frees *answer with mem_free. */
int supervise_ask(const char *folder, const char *question, char **answer, struct error *err);

#endif
