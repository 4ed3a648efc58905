/* SPDX-License-Identifier: Apache-2.0
 *
 * The driving side of a session over several tasks. The graph was cut (graph/join.h) and is of this
 * driver's instance (graph/task.h). Parts on the driver's own task run here, the others are
 * registered with their tasks, once, and started with one message a step to each; values go
 * straight from task to task. The first failure ends a step everywhere and is its error.
 *
 * One thread uses a driver session.
 */
#ifndef TF_TRANSPORT_DRIVER_SESSION_H
#define TF_TRANSPORT_DRIVER_SESSION_H

#include "exec/session/session.h"
#include "graph/cluster.h"
#include "transport/value/conns.h"

struct driver_session_options {
    struct conns *conns;
    const struct graph *graph;
    const char *task;              /* the driver's own: "worker:0" */
    const struct cluster *cluster; /* addresses of the others */
    struct session_options local;  /* of what runs here */
    double timeout;                /* seconds until all tasks must be there; 0: 30 */
    uint32_t replica;              /* of random ops and pushes: the worker's number */

    /* Whether the caller's thread runs the connection manager's loop while it waits; else another
     * thread does. */
    bool pumps;
    /* Asked now and then while it is opened: whether to give up. May be NULL. */
    bool (*given_up)(void *context);
    void *context;
};

struct driver_session;

/* Dials the tasks that the graph needs and opens the session with each. ERR_CONFIG: a task is not
 * in the cluster; ERR_UNAVAILABLE: it cannot be reached within the timeout. */
int driver_session_open(const struct driver_session_options *options,
                        struct driver_session **session, struct error *err);
/* Ends the session with all tasks, as far as they are there. */
void driver_session_close(struct driver_session *session);

/* As session_run; node ids and edges are of the whole graph. step->session and step->incarnation
 * are set here, step->replica, too. */
int driver_session_run(struct driver_session *session, const struct session_call *call,
                       struct step *step, struct tensor *fetches, struct error *err);

/* Ends the step that runs now, and any later one as soon as it starts; from any thread. */
void driver_session_cancel(struct driver_session *session, const struct error *why);

/* The variables of the driver's own task. */
struct variable_store *driver_session_variables(struct driver_session *session);

/* How many other tasks the session has, and which of them has that name; -1: none. */
int driver_session_tasks(const struct driver_session *session);
int driver_session_find(const struct driver_session *session, const char *name);

/* Asks task `i` something of its own and waits. The reply is the caller's to release. */
struct driver_ask {
    const char *verb;
    int n_fields;
    void (*pack)(void *context, msgpack_packer *packer);
    void *context;
    const struct tensor *value; /* which goes with it, or, as bytes, */
    const struct graph *graph;  /* both NULL: neither */
};
int driver_session_ask(struct driver_session *session, int i, const struct driver_ask *ask,
                       void (*reply)(void *context, const struct record *record),
                       struct error *err);

#endif
