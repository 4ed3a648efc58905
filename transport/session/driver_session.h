/* SPDX-License-Identifier: Apache-2.0
 *
 * The driving side of a session over several tasks. The graph has been cut (graph/join.h) and is
 * this driver's instance (graph/task.h). Parts on the driver's own task run here; each other part
 * is registered with its task once, and started with one message per step. Values are sent directly
 * between tasks. The first failure ends a step everywhere and is its error.
 *
 * One thread uses a driver session.
 */
#ifndef TF_TRANSPORT_DRIVER_SESSION_H
#define TF_TRANSPORT_DRIVER_SESSION_H

#include "exec/session/session.h"
#include "graph/cluster.h"
#include "transport/value/inquiry.h"

struct driver_session_options {
    struct conns *conns;
    const struct graph *graph;
    const char *task;              /* the driver's own task: "worker:0" */
    const struct cluster *cluster; /* addresses of the other tasks */
    struct session_options local;  /* for the part that runs here */
    double timeout;                /* seconds until all tasks must be linked */
    uint32_t replica;              /* for random ops and pushes: the worker's number */

    /* The caller's thread runs the connection manager's loop while it waits; else another thread
     * runs it. */
    bool pumps;
    /* Polled while the session is opened; returns whether to give up. May be NULL. */
    bool (*given_up)(void *context);
    void *context;
};

struct driver_session;

/* Dials the tasks that the graph needs and opens the session with each. ERR_CONFIG: a task is not
 * in the cluster; ERR_UNAVAILABLE: it cannot be reached within the timeout. */
int driver_session_open(const struct driver_session_options *options,
                        struct driver_session **session, struct error *err);
/* Ends the session with all tasks that are linked. */
void driver_session_close(struct driver_session *session);

/* As session_run; node ids and edges refer to the whole graph. Sets step->session,
 * step->incarnation and step->replica. */
int driver_session_run(struct driver_session *session, const struct plan_request *call,
                       struct step *step, struct tensor *fetches, struct error *err);

/* Ends the current step, and later ones as soon as they start; from any thread. */
void driver_session_cancel(struct driver_session *session, const struct error *why);

/* Return the number of other tasks, and the index of the one with that name; -1: none. */
int driver_session_tasks(const struct driver_session *session);
int driver_session_find(const struct driver_session *session, const char *name);

/* Sends a request of the session to task `i`, and waits for the reply. */
int driver_session_ask(struct driver_session *session, int i, const struct task_request *request,
                       struct error *err);
/* Asks task `i` to run the graph's entry repeatedly (transport/session/update_loop.h). */
int driver_session_update(struct driver_session *session, int i, const struct graph *graph,
                          struct error *err);

#endif
