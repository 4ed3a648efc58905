/* SPDX-License-Identifier: Apache-2.0
 *
 * Passes: pure functions from a graph to a new graph that computes the same. The source stays as it
 * is. What a node computes keeps its bits (but for the sign and payload of a NaN), and a node that
 * stays keeps its name, its seeds and its device.
 *
 * What stays, whatever a pass finds out:
 *   - the node of each edge that an entry names, under its name
 *   - the nodes of `keep`, which may be fed: they are not folded, merged or seen through
 *   - stateful nodes, readers of variables and control flow, unless nothing needs them
 * When a node with a name of its own (not one made from its op's) gives way to an equal tensor, an
 * alias keeps the name fetchable.
 */
#ifndef TF_PASS_PASS_H
#define TF_PASS_PASS_H

#include "graph/graph.h"

/* Constants larger than this are not made. */
#define FOLD_BYTES_MAX ((int64_t)10 << 20)

/* Computes the values of edges of a graph that needs no feeds. Returns 0 and host tensors that the
 * caller releases, or an error. */
struct fold_evaluator {
    int (*evaluate)(void *context, const struct graph *graph, const struct edge *edges, int n,
                    struct tensor *values, struct error *err);
    void *context;
};

struct pass_options {
    const char *const *keep; /* names of nodes or aliases */
    int n_keep;
    const struct fold_evaluator *evaluator; /* NULL: only what needs no computing is folded */

    /* Told of each change: the node's name and what was done to it. NULL: nobody. */
    void (*note)(void *context, const char *node, const char *what);
    void *context;
};

/* Tells of a change, if there are options. */
static inline void pass_note(const struct pass_options *options, const char *node, const char *what)
{
    if (options && options->note)
        options->note(options->context, node, what);
}

/* *to: the new graph, which borrows from `from`; NULL when there was nothing to change. */
typedef int pass_run(const struct graph *from, const struct pass_options *options,
                     struct graph **to, int *n_changes, struct error *err);

struct pass {
    const char *name;
    const char *verb; /* what it did to nodes: "removed" */
    pass_run *run;
};

#define PASS_ROUNDS_MAX 10

struct pass_result {
    struct graph *graph;         /* the last of `graphs`, or the source: nothing changed */
    VEC(struct graph *) graphs;  /* each borrows from the one before, the first from the source */
    int n_rounds, n_changes[16]; /* by place in the list of passes that was given */
};

/* Runs the passes in turn until none changes anything, at most PASS_ROUNDS_MAX rounds. The source
 * must outlive the result, and is not changed unless the caller changes result->graph when it is
 * the source. pass_result_release frees all but the source. */
int pass_optimize(struct graph *source, const struct pass *const *passes, int n_passes,
                  const struct pass_options *options, struct pass_result *result,
                  struct error *err);
void pass_result_release(struct pass_result *result);

#endif
