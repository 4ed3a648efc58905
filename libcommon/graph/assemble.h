/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a graph of what a reader found: nodes that name their inputs, in any order, become a
 * checked graph with inferred shapes. Shared by the readers of records and of text.
 */
#ifndef TF_GRAPH_ASSEMBLE_H
#define TF_GRAPH_ASSEMBLE_H

#include "graph/graph.h"

struct raw_node {
    const char *name, *op;
    int64_t version;           /* of the op's meaning */
    const char *const *inputs; /* "n", "n:1", "^n" */
    int n_inputs;
    const struct attr *attrs;
    int n_attrs;
    const char *device, *assigned, *file; /* NULL: none */
    int line;                             /* of the script `file` */
    int text_line;                        /* of the text that was read; 0: not from a text */
    const enum dtype *types;              /* of the first outputs, as the text states them */
    int n_types;
    const char *types_text; /* what it says of them */
};

struct raw_name { /* an entry point or, with one edge, an alias */
    const char *name;
    const char *const *edges;
    int n_edges;
    int text_line;
};

typedef VEC(struct raw_name) raw_names;
typedef VEC(const char *) raw_texts;

/* Everything lies in the arena or outlives the raw graph. */
struct raw_graph {
    struct arena arena;
    VEC(struct raw_node) nodes;
    raw_names entries, aliases;
    raw_texts made, removed;
    int failed_line; /* text line that the error of graph_assemble belongs to; 0: none */
};

void raw_graph_release(struct raw_graph *raw);

/* Nodes keep their order if it is topological. On success the caller frees *graph. ERR_DATA, or
 * ERR_PROTOCOL for an op of a later version, naming the node. */
int graph_assemble(const struct registry *registry, struct raw_graph *raw, struct graph **graph,
                   struct error *err);

/* ERR_DATA for a loop variable whose shape changes after the first iteration, or whose next value
 * does not depend on the loop's condition. Call it when all shapes except those of back edges are
 * known. */
int graph_check_rounds(const struct graph *graph, struct error *err);

#endif
