/* SPDX-License-Identifier: Apache-2.0
 *
 * A session: a graph, its variables, and the plans made for it, kept by feeds, fetches and targets
 * (least recently used first out; beyond the limit a plan for all shapes serves). It runs tf-exec,
 * tf-op and constant folding.
 */
#ifndef TF_EXEC_SESSION_H
#define TF_EXEC_SESSION_H

#include "exec/plan/plan.h"

struct session;
struct session_handle;
struct plan_cache_entry;

struct session_options {
    struct plan_options plan; /* variables NULL: the session has its own store */
    int plans_max;            /* cached; 0: 16 */

    /* The devices of a graph that was cut into one part for each, which the caller keeps:
     * plan.device is not used then. NULL: all nodes are on plan.device. */
    struct device *const *devices;
    int n_devices;
};

/* The graph must outlive the session and may grow between calls, but not change. */
struct session *session_new(const struct graph *graph, const struct session_options *options);
void session_free(struct session *session);
struct variable_store *session_variables(struct session *session);

struct session_call {
    const struct edge *feeds; /* n_feeds edges, and their tensors */
    const struct tensor *feed_values;
    int n_feeds;
    const struct edge *fetches;
    int n_fetches;
    const int *targets; /* node ids */
    int n_targets;
    const plan_order *order; /* of a part, what its driver says; NULL: it is all there is */
};

/* Returns the request of a plan for the call; `feeds` are the call's. */
static inline struct plan_request session_request(const struct session_call *call,
                                                  const struct plan_feed *feeds)
{
    return (struct plan_request){.feeds = feeds,
                                 .n_feeds = call->n_feeds,
                                 .fetches = call->fetches,
                                 .n_fetches = call->n_fetches,
                                 .targets = call->targets,
                                 .n_targets = call->n_targets,
                                 .order = call->order};
}

/* Finds or makes the plan, runs one step. Thread-safe. */
int session_run(struct session *session, const struct session_call *call, struct step *step,
                struct tensor *fetches, struct error *err);

/* A call that is made again and again: as long as its feeds have the types and shapes of the time
 * before, a step looks for no plan and takes no lock of the session. Feeds that have others are as
 * welcome, and then the usual ones. The call's feeds, fetches and targets are borrowed, their
 * values are not looked at before the first step. Used by one thread at a time; freed before the
 * session. */
struct session_handle *session_prepare(struct session *session, const struct session_call *call);
int session_run_prepared(struct session_handle *handle, const struct tensor *feeds,
                         struct step *step, struct tensor *fetches, struct error *err);
void session_handle_free(struct session_handle *handle);

/* The waiter for a step that was started, as struct step_done, and with its rules. The call and
 * what it points to may go when session_start has returned, except for the feeds. */
struct session_done {
    void (*over)(struct session_done *done, int code, const struct error *err);
    struct step_done done; /* `computes` is the caller's; the rest is the session's */
    struct plan_cache_entry *plans;
};

/* Runs like session_run, but does not wait: see plan_start. */
void session_start(struct session *session, const struct session_call *call, struct step *step,
                   struct tensor *fetches, struct session_done *done);

/* The same where the plan is there already; false, and nothing was done: it has to be made first,
 * which takes long (the values of new variables may be read from a checkpoint). For threads that
 * others wait for. */
bool session_start_planned(struct session *session, const struct session_call *call,
                           struct step *step, struct tensor *fetches, struct session_done *done);

/* The plans for a call, one for each device that takes part, for --dump-plan; the session owns
 * them. */
int session_plans(struct session *session, const struct session_call *call,
                  struct plan *const **plans, int *n, struct error *err);

#endif
