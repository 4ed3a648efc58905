/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph that a driver sends with a request, and the cluster of its tasks: the text of a cluster
 * file. Both come as bytes, which another thread than the loop's reads, as large ones take long.
 */
#ifndef TF_TRANSPORT_SERVED_GRAPH_H
#define TF_TRANSPORT_SERVED_GRAPH_H

#include "graph/cluster.h"
#include "transport/value/conns.h"

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
