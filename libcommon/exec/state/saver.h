/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables to a stream of `tensor` records and back: one record per variable, with its container,
 * its number of updates, the step that was last and, of a slice, which part of the whole it is. The
 * exchange form of checkpoints: what was cut into slices goes into other slices, or a whole
 * (exec/state/saved_parts.h).
 */
#ifndef TF_EXEC_SAVER_H
#define TF_EXEC_SAVER_H

#include "base/vec.h"
#include "exec/device/device_set.h"
#include "exec/state/variable.h"
#include "graph/graph.h"
#include "wire/record.h"

/* Writes all variables that have a value; the caller finishes the stream. Each is locked for
 * reading while it is written. */
int variables_save(struct variable_store *store, int64_t step, struct stream_writer *writer,
                   struct error *err);

/* The next variable of the graph, from node *at on, that a checkpoint must have (graph/holders.h)
 * and that has no value in the store; *at is behind it then. NULL: there is none. Waits for steps
 * that write them. */
const struct node *variables_find_lacking(struct variable_store *store, const struct graph *graph,
                                          size_t *at);
/* ERR_DATA naming it: what was saved without it could not be restored. */
int variables_check_all(struct variable_store *store, const struct graph *graph, struct error *err);

/* Reads a stream to its end into the variables of the graph; what the graph does not have is passed
 * over. ERR_DATA naming a variable of the graph that the stream lacks or has with gaps, whose type
 * or shape differs, or whose slices overlap and differ. Nothing is changed unless all fit. *step is
 * the last step that was saved. With several devices each variable goes to the one that its node is
 * assigned to. */
int variables_restore(struct variable_store *store, const struct graph *graph,
                      const struct device_set *devices, struct stream_reader *reader, int64_t *step,
                      struct error *err);

/* Returns the variable that a node stands for, as a key of the store. The texts are the node's. */
struct variable variable_of_node(const struct node *node, struct device *device);

/* ---- the same, a variable at a time: where several stores have the variables of a graph ---- */

struct saved_variable {
    const struct node *node;
    struct tensor value; /* in host memory; type DTYPE_INVALID: there is none */
    int64_t updates;
};

typedef VEC(struct saved_variable) saved_variables;

struct load_request {
    const struct graph *graph;
    /* Returns whether a variable may be missing in what was saved; NULL: none may. */
    bool (*may_lack)(void *context, const struct node *node);
    /* Told of each part of a resource (exec/state/resource.h), once it is known that the variables
     * fit; NULL: these are passed over. */
    int (*part)(void *context, const struct variable_record *part, struct error *err);
    void *context;
};

/* Reads a stream to its end; *saved gets what the graph has, in the order of its nodes. Errors as
 * of variables_restore. saved_release in any case. */
int variables_load(const struct load_request *wanted, struct stream_reader *reader,
                   saved_variables *saved, int64_t *step, struct error *err);
void saved_release(saved_variables *saved);

/* Writes one as a record. */
int variable_write(const struct saved_variable *saved, int64_t step, struct stream_writer *writer,
                   struct error *err);

/* A copy of the value that the node's variable has in the store. Waits for steps that write it. */
int variable_take(struct variable_store *store, struct saved_variable *saved, struct error *err);

/* Gives the variable that value; makes it if there is none. ERR_DATA when type or shape do not fit.
 * Waits for steps that have it locked. */
int variable_put(struct variable_store *store, const struct saved_variable *saved,
                 struct device *device, struct error *err);

#endif
