/* SPDX-License-Identifier: Apache-2.0
 *
 * The serving side of sessions: a task runs what drivers register with it. docs/session.md
 * describes the requests.
 *
 *   open      a session: the task's part of a graph, and the addresses of the tasks it talks to
 *   register  feeds, fetches and targets; the reply is a handle
 *   step      runs a handle once; answered with the fetches when the task's part is over
 *   cancel    ends a step, with the reason
 *   read      the value of a variable of the session's graph
 *   write     gives it one
 *   update    runs an entry again and again (transport/session/update_loop.h)
 *   close     ends a session and all that runs in it
 *   info      what the task is, and how much it does
 *
 * Variables belong to the process, not to a session. A driver whose link ends takes its sessions
 * with it.
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
    const char *task; /* "ps:0"; empty: what the connection manager says */
    const struct registry *registry;
    const struct kernel_table *kernels;
    struct device *const *devices; /* of the task */
    int n_devices;
    int threads; /* that run expensive kernels of a step at once: struct plan_options */
    struct variable_store *variables;
    double timeout; /* seconds until other tasks must be linked; 0: 30 */
};

struct server;

/* Registers the verbs. Everything that the options point to stays the caller's and must outlive it.
 * Before the connection manager's loop runs. */
struct server *server_new(const struct server_options *options);
/* Ends all sessions, and waits until their steps have ended. In the thread that ran the loop. */
void server_free(struct server *server);

#endif
