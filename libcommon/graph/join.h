/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts that a graph was cut into, as one graph again: each node under its name and on its
 * device, no edge between two parts, entries and aliases together. Pairs of Send and Recv connect
 * the parts: a Recv's tensor_name is the name of its Send. The fetches of an entry are in the order
 * that they had, which nodes of several parts know: "ENTRY:SLOT:POSITION" in JOIN_ORDER.
 */
#ifndef TF_GRAPH_JOIN_H
#define TF_GRAPH_JOIN_H

#include "graph/graph_io.h"

#define JOIN_ORDER "_order"

/* A graph that borrows from the parts, which must outlive it; graph_free frees it alone. ERR_DATA
 * when two parts have a node or an alias of one name, a Recv lacks its Send or a Send its Recv. */
int graph_join(const struct graph *const *parts, int n, struct graph **joined, struct error *err);

/* The beginning of a stream: a graph, or the parts of one. */
struct stream_graph {
    VEC(struct graph *) parts;
    struct graph *graph; /* of all parts, or the only one */
    bool is_cut;
};

/* Reads graphs as long as a Send or a Recv lacks the other, and as many as the stream says there
 * are if the first is a part. Errors as of graph_read and graph_join. stream_graph_release in any
 * case.
 */
int stream_graph_read(struct stream_reader *reader, const struct registry *registry,
                      struct stream_graph *joined, struct error *err);
void stream_graph_release(struct stream_graph *joined);

/* The Send of a Recv; NULL for other nodes, and where the graph does not have it. */
const struct node *join_send_of(const struct graph *graph, const struct node *node);

#endif
