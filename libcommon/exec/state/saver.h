/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables to a stream of `tensor` records and back: one record per variable, with its container,
 * its number of updates, the last step and, for a slice, its place in the whole. The exchange form
 * of checkpoints: a variable that was sliced is restored into other slices, or a whole
 * (exec/state/saved_parts.h).
 */
#ifndef TF_EXEC_SAVER_H
#define TF_EXEC_SAVER_H

#include "base/vec.h"
#include "exec/device/device_set.h"
#include "exec/state/saved_parts.h"
#include "graph/graph.h"
#include "wire/record.h"

/* Writes all variables that have a value; the caller finishes the stream. Each is locked for
 * reading while it is written. */
int variables_save(struct variable_store *store, int64_t step, struct stream_writer *writer,
                   struct error *err);

/* The next variable of the graph, from node *at on, that a checkpoint must have (graph/holders.h)
 * but that has no value in the store; then *at is the node after it. NULL: there is none. Waits for
 * steps that write variables. */
const struct node *variables_find_lacking(struct variable_store *store, const struct graph *graph,
                                          size_t *at);
/* ERR_DATA names a variable without which a checkpoint could not be restored. */
int variables_check_all(struct variable_store *store, const struct graph *graph, struct error *err);

/* Reads a stream to its end into the variables of the graph; others are skipped. ERR_DATA names a
 * variable of the graph that the stream lacks or has with gaps, whose type or shape differs, or
 * whose slices overlap and differ. Nothing is changed unless all fit. *step is the last step that
 * was saved. With several devices each variable goes to the one that its node is assigned to. */
int variables_restore(struct variable_store *store, const struct graph *graph,
                      const struct device_set *devices, struct stream_reader *reader, int64_t *step,
                      struct error *err);

/* Returns the variable of a node, as a key of the store. The texts belong to the node. */
struct variable variable_of_node(const struct node *node, struct device *device);

/* ---- one variable at a time, for graphs whose variables are in several stores ---- */

struct saved_variable {
    const struct node *node;
    struct tensor value; /* in host memory; type DTYPE_INVALID: none */
    int64_t updates;
};

typedef VEC(struct saved_variable) saved_variables;

struct load_request {
    const struct graph *graph;
    /* Returns the node's variable as it was saved; NULL: as variable_of_node returns it. */
    struct variable (*like)(void *context, const struct node *node);
    /* Returns whether a variable may be missing; NULL: none may. */
    bool (*may_lack)(void *context, const struct node *node);
    /* Called for each part of a resource (exec/state/resource.h), once the variables are known to
     * fit; NULL: parts are skipped. */
    int (*part)(void *context, const struct variable_record *part, struct error *err);
    void *context;
};

/* Appends the graph's variables, in the order of nodes, to *saved; NULL: only checks that they fit.
 * Errors as of saved_parts_read, but ERR_DATA for a missing one. Ignores `part`. */
int saved_parts_load(const struct saved_parts *parts, const struct load_request *wanted,
                     saved_variables *saved, struct error *err);

/* Reads a stream to its end, as saved_parts_load does; errors as of variables_restore. The caller
 * always calls saved_release. */
int variables_load(const struct load_request *wanted, struct stream_reader *reader,
                   saved_variables *saved, int64_t *step, struct error *err);
void saved_release(saved_variables *saved);

/* Writes a variable as a record. */
int variable_write(const struct saved_variable *saved, int64_t step, struct stream_writer *writer,
                   struct error *err);

/* Copies the value of the node's variable in the store. Waits for steps that write it. */
int variable_take(struct variable_store *store, struct saved_variable *saved, struct error *err);

/* Sets the variable's value; makes the variable if there is none. ERR_DATA if type or shape do not
 * fit. Waits for steps that have it locked. */
int variable_put(struct variable_store *store, const struct saved_variable *saved,
                 struct device *device, struct error *err);

#endif
