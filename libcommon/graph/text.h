/* SPDX-License-Identifier: Apache-2.0
 *
 * The canonical text form of a graph, printed and parsed: one node per line, everything explicit,
 * in topological order with ties by id. The syntax is described in docs/text.md.
 *
 * Printing, reading and printing again gives the same bytes; reading what was printed gives the
 * same graph, its nodes numbered in the order of the lines.
 */
#ifndef TF_GRAPH_TEXT_H
#define TF_GRAPH_TEXT_H

#include "graph/graph.h"

#define TEXT_VERSION 1

struct text_form {
    int64_t elide;  /* elements after which constants are cut; such a text is for reading by eye and
                     * cannot be parsed; below 0: no limit */
    bool no_places; /* leaves out where in a script nodes come from, so that texts of two scripts,
                     * or of two versions of one, differ only where the graphs do */
};

/* Appends the whole graph; `form` NULL: all of it. ERR_DATA if the graph has a cycle. */
int graph_print_text(struct str *out, const struct graph *graph, const struct text_form *form,
                     struct error *err);

/* Appends the types of a node's outputs: "float32[?,64], int32[]". */
void graph_print_types(struct str *out, const struct node *node);

/* Parses a text of n bytes. `name` is the file's, for messages ("NAME:LINE: what", ERR_DATA). Types
 * in the text are only checked; they are inferred again. The result satisfies graph_check; the
 * caller frees it. */
int graph_parse_text(const char *text, size_t n, const char *name, const struct registry *registry,
                     struct graph **graph, struct error *err);

#endif
