/* SPDX-License-Identifier: Apache-2.0
 *
 * Restoring the variables of a graph from a checkpoint.
 */
#ifndef TF_CHECKPOINT_RESTORE_H
#define TF_CHECKPOINT_RESTORE_H

#include "checkpoint/store/checkpoint.h"
#include "exec/state/saver.h"

/* Names in the checkpoint that differ from those in the graph: "NEW=OLD", or "NEW/=OLD/" for all
 * names with that prefix. */
struct restore_names {
    const char *const *pairs;
    size_t n;
};

/* ERR_USAGE if a pair is malformed, or matches no variable that earlier pairs do not match. */
int restore_check_names(const struct restore_names *names, const struct graph *graph,
                        struct error *err);

/* Returns the node's variable under its name in the checkpoint, which may be in the arena. */
struct variable restore_variable(const struct node *node, const struct restore_names *names,
                                 struct arena *arena);

/* Restores the resources that aggregate updates and count workers: those of one shard ("ps-0"), or
 * of all (NULL). */
int checkpoint_load_resources(struct checkpoint *checkpoint, const char *shard,
                              struct variable_store *variables, struct error *err);

struct restore_request {
    const struct graph *graph;
    struct restore_names names;
    struct variable_store *variables;
    struct device *device; /* where missing variables are created */

    /* Called by restore_partial with a line for each thing that it leaves out. May be NULL. */
    void (*left)(void *context, const char *line);
    void *context;
};

struct restore_result {
    int64_t step;
    struct ckpt_run run;
    bool fits;                /* the checkpoint has the graph's variables, damaged or not */
    struct error passed_over; /* why no newer one was taken; code 0: this is the newest */
};

/* Restores the newest checkpoint that is complete and intact in every byte (`step`
 * CHECKPOINT_NEWEST), or that of a step. The variables are changed only on success. ERR_NOINPUT:
 * there is none. */
int store_restore(struct store *store, int64_t step, const struct restore_request *request,
                  struct restore_result *restored, struct error *err);

/* Restores, from what source_open opens, those variables that the graph also has with the same type
 * and a shape that fits; the others stay as they are. The variables are changed only on success.
 * ERR_DATA also if none fits. */
int restore_partial(const char *name, const struct restore_request *request, struct error *err);

/* Opens the graph's variables in a store's newest intact checkpoint, or in that of a step, as a
 * stream of records. `passed_over`: why no newer one was taken; code 0: it is the newest. The
 * caller frees the reader. */
int store_stream(const char *path, int64_t step, const struct graph *graph,
                 struct stream_reader **reader, struct error *passed_over, struct error *err);

/* Opens all tensors of a file of another program, as a stream of records. */
int archive_stream(const char *path, struct stream_reader **reader, struct error *err);

#endif
