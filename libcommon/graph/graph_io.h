/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs as records of a stream; the layout of the record is described in docs/stream.md.
 */
#ifndef TF_GRAPH_GRAPH_IO_H
#define TF_GRAPH_GRAPH_IO_H

#include "graph/graph.h"
#include "wire/record.h"

/* Appends the graph as one record. */
int graph_write(struct stream_writer *writer, const struct graph *graph, struct error *err);

/* Makes a graph of a record that was read. Every node is checked against the registry's
 * declarations and shapes are inferred again; the result satisfies graph_check and keeps nothing of
 * the record. ERR_DATA (ERR_PROTOCOL for an op of a later version) with a line that names the node.
 * The caller frees *graph. */
int graph_from_record(const struct registry *registry, const struct record *record,
                      struct graph **graph, struct error *err);

/* Reads the next record, which must be a graph, into *graph; ERR_NOINPUT at the end of the input,
 * ERR_DATA if another record comes. Errors start with the reader's name. */
int graph_read(struct stream_reader *reader, const struct registry *registry, struct graph **graph,
               struct error *err);

/* Like graph_read, for an input that holds one graph and nothing else: reads to the end, so that a
 * truncated stream is detected. */
int graph_read_whole(struct stream_reader *reader, const struct registry *registry,
                     struct graph **graph, struct error *err);

#endif
