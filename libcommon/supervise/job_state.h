/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries a job's folder from outside: its supervisor (supervise/supervise.h) writes its state
 * there, and listens.
 */
#ifndef TF_SUPERVISE_JOB_STATE_H
#define TF_SUPERVISE_JOB_STATE_H

#include "base/error.h"
#include "base/str.h"

#define JOB_STATE_NAME "run.json" /* in the folder; docs/supervise.md */

/* Gets the state, as JSON; with `stop`, ends the job as TERM does and returns when it has ended,
 * with its last state or none. ERR_NOINPUT: nothing ever ran there; ERR_UNAVAILABLE: its supervisor
 * has died; ERR_DENIED: it is another user's. */
int job_state_ask(const char *folder, bool stop, struct str *state, struct error *err);

/* Returns whether a supervisor runs a job in the folder, or is about to end it. */
bool job_is_running(const char *folder);

#endif
