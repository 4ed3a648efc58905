/* SPDX-License-Identifier: Apache-2.0
 *
 * A checkpoint into the variables of a graph.
 */
#ifndef TF_CHECKPOINT_RESTORE_H
#define TF_CHECKPOINT_RESTORE_H

#include "checkpoint/store/checkpoint.h"
#include "exec/state/saver.h"

/* Names in the checkpoint that differ from those in the graph: "NEW=OLD", and "NEW/=OLD/" for all
 * that begin so. */
struct restore_names {
    const char *const *pairs;
    size_t n;
};

/* ERR_USAGE when a pair is none, or is of no variable of the graph that those before it leave. */
int restore_check_names(const struct restore_names *names, const struct graph *graph,
                        struct error *err);

/* Returns the node's variable as the checkpoint has it. Its name may be in the arena. */
struct variable restore_variable(const struct node *node, const struct restore_names *names,
                                 struct arena *arena);

/* Makes what aggregates updates and counts workers, as it was: that of one shard ("ps-0"), or of
 * all (NULL). */
int checkpoint_load_resources(struct checkpoint *checkpoint, const char *shard,
                              struct variable_store *variables, struct error *err);

struct restore_request {
    const struct graph *graph;
    struct restore_names names;
    struct variable_store *variables;
    struct device *device; /* of variables that are not there yet */

    /* Called by restore_partial with a line for all that it leaves out. May be NULL. */
    void (*left)(void *context, const char *line);
    void *context;
};

struct restore_result {
    int64_t step;
    struct ckpt_run run;
    bool fits;                /* it has the graph's variables, damaged or not */
    struct error passed_over; /* why no newer one; code 0: this is the newest */
};

/* Restores the newest checkpoint that is complete and whose every byte is as it was saved (`step`
 * CHECKPOINT_NEWEST), or that of a step. The variables are changed only if all is well. ERR_NOINPUT
 * when there is none. */
int store_restore(struct store *store, int64_t step, const struct restore_request *request,
                  struct restore_result *restored, struct error *err);

/* Restores from STORE, STORE@STEP or a file of records those variables that the graph has, too,
 * with the same type and a shape that fits; the others stay as they are. The variables are changed
 * only if all is well. ERR_DATA when none fits, too. */
int restore_partial(const char *name, const struct restore_request *request, struct error *err);

/* Opens the graph's variables of the newest intact checkpoint of a store, or of that of a step, as
 * a stream of records. `passed_over`: why no newer one; code 0: it is the newest. The reader is the
 * caller's to free. */
int store_stream(const char *path, int64_t step, const struct graph *graph,
                 struct stream_reader **reader, struct error *passed_over, struct error *err);

#endif
