/* SPDX-License-Identifier: Apache-2.0
 *
 * A session: a graph, its variables, and the plans made for it, cached by feeds, fetches and
 * targets (the least recently used one is dropped first; beyond the limit one plan serves all
 * shapes). It runs tf-exec, tf-op and constant folding.
 */
#ifndef TF_EXEC_SESSION_H
#define TF_EXEC_SESSION_H

#include "exec/run/plan_set.h"

struct session;
struct session_handle;
struct plan_cache_entry;

/* The graph must outlive the session and may grow between calls, but not change. */
struct session *session_new(const struct graph *graph, const struct session_options *options);
void session_free(struct session *session);
struct variable_store *session_variables(struct session *session);

/* Finds or makes the plan, and runs one step. Thread-safe. */
int session_run(struct session *session, const struct plan_request *call, struct step *step,
                struct tensor *fetches, struct error *err);

/* A call that is made repeatedly: while its feeds have the types and shapes of the last step, a
 * step looks for no plan and takes no lock of the session. Other feeds are allowed, and become the
 * usual ones. The call's feeds, fetches and targets are borrowed; feed values are not read before
 * the first step. Used by one thread at a time; freed before the session. */
struct session_handle *session_prepare(struct session *session, const struct plan_request *call);
int session_run_prepared(struct session_handle *handle, const struct tensor *feeds,
                         struct step *step, struct tensor *fetches, struct error *err);
void session_handle_free(struct session_handle *handle);

/* The waiter for a step that was started, with the rules of struct step_done. The call and
 * everything it points to, except the feeds, may go when session_start has returned. */
struct session_done {
    void (*over)(struct session_done *done, int code, const struct error *err);
    struct step_done done; /* `computes` is the caller's; the rest is the session's */
    struct plan_cache_entry *plans;
};

/* Runs like session_run, but does not wait: see plan_start. */
void session_start(struct session *session, const struct plan_request *call, struct step *step,
                   struct tensor *fetches, struct session_done *done);

/* As session_start, if the plan exists. Returns false, and does nothing, if it must be made first,
 * which takes long (values of new variables may be read from a checkpoint). For threads that others
 * wait for. */
bool session_start_planned(struct session *session, const struct plan_request *call,
                           struct step *step, struct tensor *fetches, struct session_done *done);

/* The plans for a call, one for each device that takes part, for --dump-plan; the session owns
 * them. */
int session_plans(struct session *session, const struct plan_request *call,
                  struct plan *const **plans, int *n, struct error *err);

#endif
