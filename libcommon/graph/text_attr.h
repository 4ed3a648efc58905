/* SPDX-License-Identifier: Apache-2.0
 *
 * One attribute of the text form, and the types that it states; internal to its parser.
 */
#ifndef TF_GRAPH_TEXT_ATTR_H
#define TF_GRAPH_TEXT_ATTR_H

#include "graph/assemble.h"

/* Parses "name=value" or, for free attributes, "_name:kind=value". `dtype` is the element type of
 * tensors that do not state one. Returns the end, or NULL with the error set; everything is
 * allocated in the arena. */
const char *text_parse_attr(struct arena *arena, const char *text, const struct op *op,
                            enum dtype dtype, struct attr *attr, struct error *err);

/* Sets ERR_DATA, and the line of the text, for a node whose types differ from those on its line.
 * Shapes may differ, as editing one changes the shapes of everything computed from it. */
int text_check_types(const struct raw_graph *raw, const struct graph *graph, int *line,
                     struct error *err);

#endif
