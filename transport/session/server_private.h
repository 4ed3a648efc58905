/* SPDX-License-Identifier: Apache-2.0
 *
 * The server's members, also for its tests, and what it shares with updates. Private to transport.
 */
#ifndef TF_TRANSPORT_SERVER_PRIVATE_H
#define TF_TRANSPORT_SERVER_PRIVATE_H

#include <stdatomic.h>

#include "base/serial_queue.h"
#include "graph/cluster.h"
#include "transport/session/server.h"
#include "transport/session/update_loop.h"

struct server {
    struct server_options options;
    struct conns_watcher watcher; /* the server is found by offsetof */
    struct update_loops *updates;
    struct serial_queue *graphs;     /* reads and frees graphs, as large ones take long */
    struct served_session *sessions; /* the loop's thread only */
    int n_sessions;                  /* sessions that are not closing */
    bool ends;
    atomic_uint_fast64_t steps; /* steps that were run */
};

/* The options of sessions that run here. */
struct session_options server_session_options(const struct server_options *options);

/* A graph that a driver sends with a request, and the cluster of its tasks: the text of a cluster
 * file. Both come as bytes, which another thread than the loop's reads, as large ones take long. */
struct served_graph {
    struct tensor stream; /* until it is read */
    char *cluster_text;   /* NULL: the request has none */
    struct graph *graph;
    struct cluster cluster;
};

/* Takes the bytes into the zero-initialised struct. ERR_PROTOCOL: there is no graph. */
int served_graph_take(struct served_graph *served, const struct query *query, struct error *err);
/* `what` is the graph's, for messages. */
int served_graph_read(struct served_graph *served, const struct registry *registry,
                      const char *what, struct error *err);
/* Releases all that there is; harmless when repeated. */
void served_graph_release(struct served_graph *served);

#endif
