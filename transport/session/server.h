/* SPDX-License-Identifier: Apache-2.0
 *
 * The serving side of sessions: a task runs what drivers register with it. docs/session.md
 * describes the requests.
 *
 *   open      a session: the task's part of a graph, and the addresses of the tasks it talks to
 *   register  feeds, fetches and targets; the reply is a handle
 *   step      runs a handle once; the reply has the fetches, when the task's part is over
 *   cancel    ends a step, with the reason
 *   read      the value of a variable of the session's graph
 *   write     sets the value of a variable
 *   update    runs an entry repeatedly (transport/session/update_loop.h)
 *   close     ends a session and all that runs in it
 *   info      the name of the task, and its counters
 *
 * Variables belong to the process, not to a session. When a driver's link ends, its sessions end.
 */
#ifndef TF_TRANSPORT_SERVER_H
#define TF_TRANSPORT_SERVER_H

#include "exec/session/session.h"
#include "transport/value/conns.h"

#define SERVER_SESSIONS_MAX 4096
#define SERVER_HANDLES_MAX 256 /* of a session */
#define SERVER_STEPS_MAX 1024  /* of a session, at once */

struct server_options {
    struct conns *conns;
    const char *task; /* "ps:0" */
    const struct registry *registry;
    const struct kernel_table *kernels;
    struct device *const *devices; /* of the task */
    int n_devices;
    int threads; /* for the expensive kernels of a step: struct plan_options */
    struct variable_store *variables;
    double timeout; /* seconds until other tasks must be linked */
};

struct server;

/* Registers the verbs. The options are owned by the caller and must outlive the server. Call this
 * before the connection manager's loop runs. */
struct server *server_new(const struct server_options *options);
/* Ends all sessions, and waits until their steps have ended. Call this in the thread that ran the
 * loop. */
void server_free(struct server *server);

#endif
