/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables to a stream of `tensor` records and back: one record per variable, with its container,
 * its number of updates and the step that was last. The exchange form of checkpoints.
 */
#ifndef TF_EXEC_SAVER_H
#define TF_EXEC_SAVER_H

#include "exec/variable.h"
#include "graph/graph.h"
#include "wire/record.h"

/* Writes all variables that have a value; the caller finishes the stream. Each is held for reading
 * while it is written. */
int variables_save(struct variable_store *store, int64_t step, struct stream_writer *writer,
                   struct error *err);

/* Reads a stream to its end into the variables of the graph; what the graph does not have is passed
 * over. ERR_DATA naming a variable of the graph that the stream lacks, or whose type or shape
 * differs. Nothing is changed unless all fit. *step is the last step that was saved. */
int variables_restore(struct variable_store *store, const struct graph *graph,
                      struct device *device, struct stream_reader *reader, int64_t *step,
                      struct error *err);

/* What a Variable node stands for, as a key of the store. The texts are the node's. */
struct variable variable_of_node(const struct node *node, struct device *device);

#endif
