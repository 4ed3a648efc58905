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
 * declarations and shapes are inferred again; graph_check holds for the result. Nothing of the
 * record is kept. ERR_DATA (ERR_PROTOCOL for an op of a later version) with a line that names the
 * node. The caller frees *graph. */
int graph_from_record(const struct registry *registry, const struct record *record,
                      struct graph **graph, struct error *err);

/* Reads the next record, which must be a graph, into *graph; ERR_NOINPUT when the input is at its
 * end, ERR_DATA when something else comes. Errors start with the reader's name. */
int graph_read(struct stream_reader *reader, const struct registry *registry, struct graph **graph,
               struct error *err);

/* Reads like graph_read an input that holds one graph and nothing else: to its end, so that a cut
 * stream is not taken for whole. */
int graph_read_whole(struct stream_reader *reader, const struct registry *registry,
                     struct graph **graph, struct error *err);

#endif
