/* SPDX-License-Identifier: Apache-2.0
 *
 * The canonical text form of a graph, both ways: a node a line, everything explicit, in topological
 * order with ties by id. The syntax is described in docs/text.md.
 *
 * Printing, reading and printing again gives the same bytes; reading what was printed gives the
 * same graph, its nodes numbered in the order of the lines.
 */
#ifndef TF_GRAPH_TEXT_H
#define TF_GRAPH_TEXT_H

#include "graph/graph.h"

#define TEXT_VERSION 1

struct text_form {
    int64_t elide; /* constants are cut to so many elements, after which the text is to be looked at
                    * but cannot be read back; below 0: they are not */
    bool no_places; /* nothing of where in a script nodes come from: texts of two scripts, or of two
                     * versions of one, differ where the graphs do */
};

/* Appends the whole graph; `form` NULL: all of it. ERR_DATA if the graph has a cycle. */
int graph_print_text(struct str *out, const struct graph *graph, const struct text_form *form,
                     struct error *err);

/* Appends an attribute's value as the text form has it: as attr_print, but for tensors, whose type
 * and shape are added where the literal alone does not tell them. */
void graph_print_attr(struct str *out, const struct node *node, const struct attr_value *value,
                      int64_t elide);

/* The types of a node's outputs: "float32[?,64], int32[]". */
void graph_print_types(struct str *out, const struct node *node);

/* Reads a text of n bytes. `name` is the file's, for messages ("NAME:LINE: what", ERR_DATA). Types
 * in the text are for the reader's eye: they are inferred again. graph_check holds for the result,
 * which the caller frees. */
int graph_parse_text(const char *text, size_t n, const char *name, const struct registry *registry,
                     struct graph **graph, struct error *err);

#endif
