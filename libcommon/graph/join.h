/* SPDX-License-Identifier: Apache-2.0
 *
 * Joins the partitions of a graph: each node keeps its name and device, no edge crosses between
 * partitions, and their entries and aliases are merged. Pairs of Send and Recv connect them; a
 * Recv's tensor_name is the name of its Send. An entry's fetches are restored to their original
 * order, which nodes of an entry in several partitions have in JOIN_ORDER: "ENTRY:SLOT:POSITION".
 */
#ifndef TF_GRAPH_JOIN_H
#define TF_GRAPH_JOIN_H

#include "graph/graph_io.h"

#define JOIN_ORDER "_order"

/* Makes a graph that borrows from the parts, which must outlive it; graph_free frees it alone.
 * ERR_DATA if parts share a node's or an alias's name, or a Send or a Recv lacks its other end. */
int graph_join(const struct graph *const *parts, int n, struct graph **joined, struct error *err);

/* The beginning of a stream: one graph, or the partitions of one. */
struct stream_graph {
    VEC(struct graph *) parts;
    struct graph *graph; /* of all parts, or the only one */
    bool is_cut;
};

/* Reads graphs until no Send or Recv lacks the other and, if the first is a partition, until all
 * that the stream announces are read. Errors as of graph_read and graph_join. stream_graph_release
 * in any case. */
int stream_graph_read(struct stream_reader *reader, const struct registry *registry,
                      struct stream_graph *joined, struct error *err);
void stream_graph_release(struct stream_graph *joined);

/* Returns the Send of a Recv; NULL for other nodes, and if the graph does not have it. */
const struct node *join_send_of(const struct graph *graph, const struct node *node);

#endif
